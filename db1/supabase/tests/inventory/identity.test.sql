-- A slot keeps its id and its pool for ever.
begin;
select plan(12);

insert into public.inventory_slots (id, pool_id) values
  ('00000000-0000-4000-8000-00000000000a', 'home'), ('00000000-0000-4000-8000-00000000000b', 'home');
create temp table truth as select * from tests.slots('home');

select throws_ok(
  $$ update public.inventory_slots set id = gen_random_uuid() where pool_id = 'home' $$, 'SL001', null,
  'the id of a slot cannot change'
);
select throws_ok(
  $$ update public.inventory_slots set pool_id = 'elsewhere' where pool_id = 'home' $$, 'SL001', null,
  'the pool of a slot cannot change'
);
select throws_ok(
  $$ insert into public.inventory_slots (id, pool_id) values ('00000000-0000-4000-8000-00000000000a', 'home') $$,
  '23505', null, 'the same slot cannot be put on sale twice'
);
select results_eq($$ select * from tests.slots('home') $$, $$ select * from truth $$, 'the slots are as they were');

truncate public.inventory_slots;
select throws_ok(
  $$ insert into public.inventory_slots (id, pool_id) values ('00000000-0000-4000-8000-00000000000a', 'elsewhere') $$,
  'SL001', null, 'a slot of another pool is refused, even while the cache is lost'
);
select throws_ok(
  $$ insert into public.inventory_slots (id, pool_id) values
    ('00000000-0000-4000-8000-00000000000c', 'elsewhere'), ('00000000-0000-4000-8000-00000000000b', 'elsewhere') $$,
  'SL001', null, 'one slot of another pool spoils the insert'
);
select is_empty($$ select from public.slot_manifest where pool_id = 'elsewhere' $$, 'the other pool has no slots');
select is_empty($$ select from intake.pool_totals where pool_id = 'elsewhere' $$, 'the other pool has no capacity');
select is((select available::int from public.pool_status('home')), 2, 'the pool still has its slots');
select results_eq($$ select * from tests.slots('home') $$, $$ select * from truth $$, 'and they are the same ones');
select throws_ok(
  $$ insert into public.inventory_slots (pool_id) values ('') $$, '23514', null, 'a slot needs a pool with a name'
);
select throws_ok(
  $$ insert into public.inventory_slots (pool_id) values (repeat('x', 201)) $$, '23514', null,
  'the name of a pool has at most 200 characters'
);

select * from finish();
rollback;
