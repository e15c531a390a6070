-- A pool is there once it has a row in engine_config or slots; anything else is unknown.
begin;
select plan(16);

-- All that a claim can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create function pg_temp.refuses(p_sql text, p_code text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := pg_temp.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(pg_temp.state(), v_before, p_name || ', and nothing changes');
end
$$;

select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('nowhere', 'ann', 'r') $$, 'SL002', 'a pool nobody made is unknown'
);
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('', 'ann') $$, 'SL002', 'a pool without a name is unknown'
);
select pg_temp.refuses(
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
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('config_only_closed', 'ann') $$, 'SL003',
  'an inactive pool without slots is closed'
);
insert into public.engine_config (pool_id, opens_at) values ('config_only_later', now() + interval '1 day');
select pg_temp.refuses(
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
