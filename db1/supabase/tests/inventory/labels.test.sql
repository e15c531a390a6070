-- A slot's label is on the manifest as soon as it is in the cache, and comes back with a rebuild.
begin;
select plan(8);

insert into public.inventory_slots (pool_id, label) values ('rows', 'A 1'), ('rows', 'A 2'), ('rows', null);
select throws_ok($$ insert into public.inventory_slots (pool_id, label) values ('rows', '') $$, '23514', null, 'an empty label');
select throws_ok(
  $$ insert into public.inventory_slots (pool_id, label) values ('rows', repeat('x', 101)) $$, '23514', null, 'one that is too long'
);
create function pg_temp.labels(p_table text) returns text[]
language sql as $$
  select case p_table
    when 'manifest' then (select array_agg(m.label::text order by m.sale_order) from public.slot_manifest m where m.pool_id = 'rows')
    else (select array_agg(s.label::text order by s.sale_order) from public.inventory_slots s where s.pool_id = 'rows')
  end;
$$;
select is(pg_temp.labels('manifest'), '{"A 1","A 2",null}', 'the manifest has the labels');
update public.inventory_slots set label = 'B 2' where pool_id = 'rows' and label = 'A 2';
update public.inventory_slots set label = 'B 2' where pool_id = 'rows' and label = 'B 2';
select is(pg_temp.labels('manifest'), '{"A 1","B 2",null}', 'and follows');
select public.claim_resource_and_queue('rows', 'ann');
select is(
  (public.get_claim((tests.claim_of('rows', 'ann')).claim_id)).label,
  (select m.label::text from public.slot_manifest m where m.slot_id = (tests.claim_of('rows', 'ann')).slot_id), 'a claim shows its slot''s'
);
truncate public.inventory_slots;
select intake.rebuild_inventory('rows');
select is(pg_temp.labels('cache'), '{"A 1","B 2",null}', 'a rebuild brings them back');
update public.inventory_slots set label = null where pool_id = 'rows';
select is(pg_temp.labels('manifest'), '{null,null,null}', 'and they can be taken away');
select is((select count(*) from public.slot_manifest where pool_id = 'rows'), 3::bigint, 'no slot is lost');

select * from finish();
rollback;
