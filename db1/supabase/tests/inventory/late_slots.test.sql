-- Slots added after a loss of the cache do not hide the loss.
begin;
select plan(6);

insert into public.inventory_slots (pool_id) select 'refill' from generate_series(1, 3);
create temp table sold as select public.claim_resource_and_queue('refill', 'ann') as id;

truncate public.inventory_slots;
insert into public.inventory_slots (pool_id) values ('refill');
select results_eq(
  $$ select status::text, count(*)::int from public.inventory_slots where pool_id = 'refill' group by 1 order by 1 $$,
  $$ values ('AVAILABLE', 3), ('RESERVED', 1) $$,
  'inserting after a loss rebuilds first: three old slots and the new one'
);
select is((select slots::int from intake.pool_totals where pool_id = 'refill'), 4, 'the capacity counts old and new');

truncate public.inventory_slots;
insert into public.inventory_slots (id, pool_id)
select slot_id, pool_id from public.slot_manifest where pool_id = 'refill';
select is(
  (select slots::int from intake.pool_totals where pool_id = 'refill'), 4,
  'putting the same slots on sale again adds no capacity'
);
select results_eq(
  $$ select outcome, count(*)::int from public.claim_batch(
       array_fill('refill'::text, array[5]), array['b', 'c', 'd', 'e', 'f'], array['b', 'c', 'd', 'e', 'f'])
     group by outcome order by outcome $$,
  $$ values ('claimed', 3), ('sold_out', 2) $$,
  'what was sold before is not sold again'
);
select is(
  (select count(distinct slot_id)::int from public.claims where pool_id = 'refill' and freed_at is null), 4,
  'four slots have four owners'
);
insert into public.inventory_slots (pool_id) values ('refill');
select isnt(public.claim_resource_and_queue('refill', 'g'), null, 'a slot added to a sold-out pool is found');

select * from finish();
rollback;
