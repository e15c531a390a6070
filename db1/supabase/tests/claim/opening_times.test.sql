-- A pool sells only while it is active and open.
begin;
select plan(12);

insert into public.engine_config (pool_id, is_active, opens_at, closes_at) values
  ('inactive', false, null, null),
  ('not_yet', true, now() + interval '1 second', null),
  ('over', true, null, now()),
  ('now_open', true, now(), now() + interval '1 second'),
  ('long_over', true, now() - interval '2 days', now() - interval '1 day');
insert into public.inventory_slots (pool_id)
select c.pool_id from public.engine_config c, generate_series(1, 2)
where c.pool_id in ('inactive', 'not_yet', 'over', 'now_open', 'long_over');

select tests.refuses(
  $$ select public.claim_resource_and_queue('inactive', 'ann', 'r') $$, 'SL003', 'an inactive pool is closed'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('not_yet', 'ann', 'r') $$, 'SL003',
  'a pool is closed before its opening time'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('over', 'ann', 'r') $$, 'SL003',
  'a pool is closed from its closing time on'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('long_over', 'ann') $$, 'SL003',
  'a pool that closed yesterday is closed'
);
select isnt(
  public.claim_resource_and_queue('now_open', 'ann', 'r'), null, 'a pool is open from its opening time on'
);
update public.engine_config set opens_at = now() where pool_id = 'not_yet';
select isnt(
  public.claim_resource_and_queue('not_yet', 'ann', 'r'), null,
  'a request that came too early can be tried again with the same request id'
);
update public.engine_config set is_active = true where pool_id = 'inactive';
select isnt(public.claim_resource_and_queue('inactive', 'ann', 'r'), null, 'an activated pool sells at once');
select throws_ok(
  $$ update public.engine_config set closes_at = opens_at where pool_id = 'now_open' $$, '23514', null,
  'a pool that closes before it opens is refused'
);

select * from finish();
rollback;
