-- What a buyer may know of a pool.
begin;
select plan(11);

insert into public.engine_config (pool_id, is_active, opens_at, closes_at, max_per_user, hold_sec, require_auth) values
  ('p_open', true, now(), now() + interval '1 day', 2, 60, true),
  ('p_soon', true, now() + interval '1 day', null, null, null, false),
  ('p_over', true, null, now(), null, null, false),
  ('p_off', false, now() + interval '1 day', null, null, null, false),
  ('p_bare', true, null, null, null, null, false),
  ('p_gone', true, null, null, null, null, false);
insert into public.inventory_slots (pool_id)
select pool from (values ('p_open'), ('p_soon'), ('p_over'), ('p_off'), ('p_gone'), ('p_plain')) p (pool),
  generate_series(1, 2);
select public.claim_resource_and_queue('p_open', 'ann');
select count(*) from public.claim_batch(array['p_gone', 'p_gone'], array['a', 'b'], array['a', 'b']);

select results_eq(
  $$ select p.* from public.pool_status('p_open') p $$,
  $$ select 'p_open', 'open', 2::bigint, 1::bigint, now(), now() + interval '1 day', 2, 60, true, false, null::int, null::int,
       'auto', null::bigint, null::text, 1, null::jsonb $$,
  'an open pool shows capacity, what is left, and its rules'
);
select is((select status from public.pool_status('p_soon')), 'not_open', 'a pool before its opening time is not open');
select is((select status from public.pool_status('p_over')), 'closed', 'a pool after its closing time is closed');
select is((select status from public.pool_status('p_off')), 'closed', 'an inactive pool is closed, whatever its times');
select results_eq(
  $$ select status, capacity::int, available::int from public.pool_status('p_bare') $$, $$ values ('sold_out', 0, 0) $$,
  'a pool without slots is sold out'
);
select results_eq(
  $$ select status, capacity::int, available::int from public.pool_status('p_gone') $$, $$ values ('sold_out', 2, 0) $$,
  'a pool whose slots are all claimed is sold out, before anybody was refused'
);
select results_eq(
  $$ select status, capacity::int, available::int, max_per_user, hold_sec, require_auth
     from public.pool_status('p_plain') $$,
  $$ values ('open', 2, 2, null::int, null::int, false) $$,
  'a pool without a config row is open and has no rules'
);
select is_empty($$ select public.pool_status('p_nowhere') $$, 'an unknown pool has no row');
select is_empty($$ select public.pool_status(null) $$, 'a null id has no row');

-- Watching a large pool must not cost a count a second.
insert into public.inventory_slots (pool_id) select 'p_large' from generate_series(1, 2500);
select is((select available from public.pool_status('p_large')), 2500::bigint, 'a large pool is counted');
update intake.free_counts set free = 2400 where pool_id = 'p_large';
select is((select available from public.pool_status('p_large')), 2400::bigint, 'and not counted again at once');

select * from finish();
rollback;
