-- A pool is there once it has a row in engine_config or slots; anything else is unknown.
begin;
select plan(16);

select tests.refuses(
  $$ select public.claim_resource_and_queue('nowhere', 'ann', 'r') $$, 'SL002', 'a pool that was never made is unknown'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('', 'ann') $$, 'SL002', 'a pool without a name is unknown'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue(repeat('x', 10000), 'ann') $$, 'SL002',
  'a pool with an endless name is unknown'
);

insert into public.engine_config (pool_id) values ('config_only');
select is(public.claim_resource_and_queue('config_only', 'ann'), null, 'a pool with only a config row is sold out');
select is(
  (select count(*)::int from public.claims where pool_id = 'config_only'), 0, 'nothing was claimed in an empty pool'
);
insert into public.inventory_slots (pool_id) values ('config_only');
select isnt(
  public.claim_resource_and_queue('config_only', 'ann'), null, 'a pool with only a config row sells its first slot'
);
insert into public.engine_config (pool_id, is_active) values ('config_only_closed', false);
select tests.refuses(
  $$ select public.claim_resource_and_queue('config_only_closed', 'ann') $$, 'SL003',
  'an inactive pool without slots is closed'
);
insert into public.engine_config (pool_id, opens_at) values ('config_only_later', now() + interval '1 day');
select tests.refuses(
  $$ select public.claim_resource_and_queue('config_only_later', 'ann') $$, 'SL003',
  'a pool without slots is closed before it opens'
);

insert into public.inventory_slots (pool_id) select 'slots_only' from generate_series(1, 2);
select isnt(public.claim_resource_and_queue('slots_only', 'ann'), null, 'a pool without a config row sells');
select isnt(
  public.claim_resource_and_queue('slots_only', 'ann'), null, 'a pool without a config row has no limit per user'
);
select is(
  public.claim_resource_and_queue('slots_only', 'ann'), null, 'a pool without a config row is sold out in the end'
);

select * from finish();
rollback;
