-- The manifest follows what is put on sale and what is withdrawn.
begin;
select plan(11);

insert into public.inventory_slots (pool_id)
select pool from (values ('shelf'), ('shelf_other')) p (pool), generate_series(1, 4);

select bag_eq(
  $$ select slot_id, pool_id, sale_order from public.slot_manifest where pool_id like 'shelf%' $$,
  $$ select id, pool_id::text, sale_order from public.inventory_slots where pool_id like 'shelf%' $$,
  'inserting slots is all it takes to put them on the manifest'
);
select bag_eq(
  $$ select pool_id, slots::int from intake.pool_totals where pool_id like 'shelf%' $$,
  $$ values ('shelf', 4), ('shelf_other', 4) $$,
  'each pool knows its capacity'
);

create temp table free_slot as select id from public.inventory_slots where pool_id = 'shelf' limit 1;
delete from public.inventory_slots s using free_slot f where s.id = f.id;
select is_empty(
  $$ select from public.slot_manifest m join free_slot f on f.id = m.slot_id $$,
  'a slot without a holder is withdrawn by deleting it'
);
select is((select slots::int from intake.pool_totals where pool_id = 'shelf'), 3, 'the capacity follows');

create temp table held as select public.claim_resource_and_queue('shelf', 'ann') as id;
delete from public.inventory_slots where pool_id = 'shelf';
select bag_eq(
  $$ select slot_id from public.slot_manifest where pool_id = 'shelf' $$, $$ select id from held $$,
  'a claimed slot stays on the manifest when it is deleted'
);
select is((select slots::int from intake.pool_totals where pool_id = 'shelf'), 1, 'the claimed slot still counts');
select is(public.claim_resource_and_queue('shelf', 'bob'), null, 'withdrawn slots are not sold');
select is(
  (select count(*)::int from public.claims where pool_id = 'shelf'), 1, 'the claim on the deleted slot is still there'
);

truncate public.inventory_slots;
select is(public.claim_resource_and_queue('shelf', 'bob'), null, 'after a rebuild withdrawn slots are not sold either');
select results_eq(
  $$ select id, status::text, locked_by from public.inventory_slots where pool_id = 'shelf' $$,
  $$ select id, 'RESERVED', 'ann' from held $$,
  'a rebuild brings the claimed slot back as claimed, and no other'
);
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'shelf_other'), 0,
  'a rebuild of one pool does not touch another'
);

select * from finish();
rollback;
