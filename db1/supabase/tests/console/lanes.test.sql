-- What is told of the queue goes by lane: how many are ahead of a claim, how many a pool has, and how old the oldest is.
begin;
select plan(17);

select tests.empty_queues();
delete from public.inventory_slots;
delete from public.engine_config;
insert into public.engine_config (pool_id) values ('long'), ('short');
insert into public.inventory_slots (pool_id) select 'long' from generate_series(1, 2000);
insert into public.inventory_slots (pool_id) select 'short' from generate_series(1, 10);
-- Two of the long pool for one of the other, so that the numbers of neither are close together.
create function pg_temp.claim_some(p_from int, p_to int) returns void language sql as $$
  select from generate_series(p_from, p_to) n cross join lateral public.claim_batch(
    array['long', 'short', 'long'], array['l' || 2 * n, 's' || n, 'l' || 2 * n + 1], array[null, null, null]) b;
$$;
select pg_temp.claim_some(0, 9);
create function pg_temp.ahead(p_user text) returns bigint language sql
as $$ select g.ahead from public.claims c cross join lateral public.get_claim(c.claim_id) g where c.user_id = p_user $$;
create function pg_temp.level(p_pool_id text) returns text language sql
as $$
  select concat_ws(' ', p ->> 'capacity', p ->> 'available', p ->> 'reserved', p ->> 'consumed')
  from jsonb_array_elements(public.live_sample() -> 'pools') p where p ->> 'pool_id' = p_pool_id
$$;

select results_eq(
  $$ select u, pg_temp.ahead(u) from unnest(array['s0', 's1', 's9', 'l0', 'l1', 'l19']) u $$,
  $$ values ('s0', 0::bigint), ('s1', 1), ('s9', 9), ('l0', 0), ('l1', 1), ('l19', 19) $$,
  'ahead of a claim are those of its own pool'
);
select results_eq(
  $$ select s.user_id, s.ahead from public.claim_search(p_limit => 100) s where s.user_id in ('s9', 'l19') order by 1 $$,
  $$ values ('l19', 19::bigint), ('s9', 9) $$, 'in a search, too'
);
select is(pg_temp.level('short'), '10 0 10 0', 'a pool has reserved what is in its lane');
select is(pg_temp.level('long'), '2000 1980 20 0', 'and another what is in its own');
create temp table taken as select * from public.bridge_take(array[intake.lane_of('long')], '{10}', 60);
select is(pg_temp.ahead('l19'), 9::bigint, 'what is being carried is not ahead');
select is(pg_temp.ahead('l5'), 0::bigint, 'of itself neither');
select is(pg_temp.ahead('s9'), 9::bigint, 'and is nothing to another lane');
select count(*) from public.bridge_finish(
  (select array_agg(msg_id) from taken), (select array_agg(read_ct) from taken), array_fill('committed'::text, array[10]),
  array_fill(null::text, array[10]), array_fill(0, array[10]));
select is(pg_temp.level('long'), '2000 1980 10 10', 'what is carried is consumed');
select is(pg_temp.ahead('l19'), 9::bigint, 'and still not ahead');

-- Beyond what is looked at: 1,500 of a pool whose numbers are one in three, or so.
select count(*) from generate_series(1, 15) r
cross join lateral public.claim_batch(
  array_fill('long'::text, array[100]), (select array_agg('m' || r * 100 + n) from generate_series(1, 100) n),
  array_fill(null::text, array[100])) b
cross join lateral (select nextval('pgmq.q_intake_queue_msg_id_seq') where b.ordinal % 2 = 0) skipped;
select ok(
  pg_temp.ahead('m1600') between 1200 and 1800, format('beyond 200 it is about right: %s of 1509', pg_temp.ahead('m1600'))
);
select is(pg_temp.ahead('s9'), 9::bigint, 'and exact in a lane that is short');
select is(pg_temp.level('short'), '10 0 10 0', 'beside a long lane a short one is counted');
select ok(
  (select (p ->> 'reserved')::int between 1250 and 1800 from jsonb_array_elements(public.live_sample() -> 'pools') p
   where p ->> 'pool_id' = 'long'),
  format('and the long one told about right: %s, 1510 reserved', pg_temp.level('long'))
);
select ok(tests.is_cheap(format('public.get_claim(%L)', (tests.claim_of('long', 'm1600')).claim_id)), 'however long it is, a look is cheap');
select is(
  (select concat_ws(' ', reserved, consumed) from public.pool_list('short')), '10 0', 'one pool by itself is told alike'
);

-- The oldest message is the first of a lane, whichever lane that is.
update pgmq.q_intake_queue set enqueued_at = clock_timestamp() - interval '1 hour'
where msg_id = (select min(msg_id) from pgmq.q_intake_queue where message ->> 'pool_id' = 'short');
select ok((public.live_sample() ->> 'oldest_msg_sec')::numeric between 3600 and 3700, 'the oldest message may be in any lane');
update pgmq.q_intake_queue set enqueued_at = clock_timestamp() - interval '2 hours'
where msg_id = (select min(msg_id) from pgmq.q_intake_queue where message ->> 'pool_id' = 'long');
select ok((public.live_sample() ->> 'oldest_msg_sec')::numeric between 7200 and 7300, 'in another, too');

select * from finish();
rollback;
