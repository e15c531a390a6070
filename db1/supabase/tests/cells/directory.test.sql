-- What a cell says about its own pools is the truth; of other cells it keeps the newest copy, and no pool begins in two cells.
begin;
select plan(15);
delete from intake.cells;
delete from intake.pool_places;
select public.cell_join('a', 0, 'ann');
insert into public.engine_config (pool_id) values ('ruled');
insert into public.inventory_slots (pool_id) values ('bare');

select bag_eq(
  $$ select pool_id, cell, version, moving_to, is_here from public.cell_directory('{ruled, bare, missing}') $$,
  $$ values ('ruled', 'a', 1::bigint, null::text, true), ('bare', 'a', 1, null, true) $$, 'pools by rules or slots are here');
select is(public.cell_learn('{far, ruled}', '{b, b}', '{2, 5}', '{b}', '{1}'), 1, 'it learns of a pool of another cell, not of its own');
select is(public.cell_learn('{far}', '{c}', '{1}', '{}', '{}'), 0, 'what is older changes nothing');
select is(public.cell_learn('{far}', '{c}', '{2}', '{}', '{}'), 0, 'nor what is as old');
select public.cell_learn('{}', '{}', '{}', '{b, c}', '{2, 2}');
select is((select numbers from public.cell_here()), '{"a": 0, "b": 2}', 'it knows the highest number of each cell by name, and each number once');
select public.cell_learn('{}', '{}', '{}', '{a, b}', '{7, 1}');
select is((select numbers from public.cell_here()), '{"a": 0, "b": 2}', 'a number of its own, or a lower one, teaches it nothing');
select results_eq($$ select cell, version, is_here from public.cell_directory('{far}') $$, $$ values ('b', 2::bigint, false) $$,
  'the copy is what it learnt');
select tests.refuses($$ insert into public.engine_config (pool_id) values ('far') $$, 'SL019', 'it does not begin here by its rules');
select tests.refuses($$ insert into public.inventory_slots (pool_id) values ('far') $$, 'SL019', 'nor by its slots');
select tests.refuses($$ select public.pool_create('far', 1, '{}', 'ann') $$, 'SL019', 'nor by an operator');
select lives_ok($$ insert into public.inventory_slots (pool_id) values ('near') $$, 'any other pool does');
select is((select length(d.digits) from public.cell_directory('{far}') d), 3, 'each pool has three digits');
select * from finish();
rollback;
