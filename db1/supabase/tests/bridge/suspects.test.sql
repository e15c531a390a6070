-- A message that no worker has finished twice may be what kills them: it is taken alone.
begin;
select plan(18);

select tests.empty_queues();
insert into public.engine_config (pool_id) values ('s'), ('t');
insert into public.inventory_slots (pool_id) select p from unnest(array['s', 't']) p, generate_series(1, 6);
select public.claim_resource_and_queue('s', u) from unnest(array['old', 'odd', 'fresh']) u;
select public.claim_resource_and_queue('t', u) from unnest(array['other', 'well']) u;
create function pg_temp.lanes() returns int[] language sql as $$ select array[intake.lane_of('s'), intake.lane_of('t')] $$;
create function pg_temp.dies(p_users text[]) returns void language sql as $$
  update pgmq.q_intake_queue set read_ct = read_ct + 1, vt = clock_timestamp() where message ->> 'user_id' = any (p_users);
$$;
create function pg_temp.suspect() returns text language sql as $$
  select concat_ws(' ', message ->> 'user_id', read_ct, attempts, takeovers) from public.bridge_take_suspect(pg_temp.lanes(), 30);
$$;
create temp table taken as select * from tests.take(0, 0);

select is(pg_temp.suspect(), null, 'a message that was never taken is not a suspect');
select pg_temp.dies('{old,odd,other}');
select is(pg_temp.suspect(), null, 'nor is what one worker did not finish');
insert into taken select * from tests.take(9, 0);
select set_eq(
  $$ select message ->> 'user_id', takeovers from taken $$,
  $$ values ('old', 1), ('odd', 1), ('fresh', 0), ('other', 1), ('well', 0) $$, 'it is taken over with the others'
);
update pgmq.q_intake_queue set vt = clock_timestamp() + interval '1 hour';
update pgmq.q_intake_queue set vt = clock_timestamp(), enqueued_at = now() + n * interval '1 s'
from unnest(array['other', 'old', 'odd']) with ordinality u (user_id, n) where message ->> 'user_id' = u.user_id;

select is_empty('select * from tests.take(9, 30)', 'what two workers did not finish is left out of the common take');
create temp table before as select tests.state() as state;
select is_empty($$ select * from public.bridge_take_suspect('{}', 30) $$, 'no lanes, no suspect');
select is_empty($$ select * from public.bridge_take_suspect(null, 30) $$, 'nor without any');
select is_empty($$ select * from public.bridge_take_suspect('{null,8190}', 30) $$, 'nor in lanes that are none, or empty');
select is(tests.state(), (select state from before), 'and nothing is changed by that');
select is(pg_temp.suspect(), 'other 3 1 2', 'one of all lanes is taken, the oldest, and says how often it was taken over');
select ok(
  (select vt between clock_timestamp() + interval '40 s' and clock_timestamp() + interval '45 s'
   from pgmq.q_intake_queue where message ->> 'user_id' = 'other'),
  'under a lease, which is the pool''s where that is longer'
);
select is(pg_temp.suspect(), 'old 3 1 2', 'then the next');

select is(tests.finish('old', 3, 'retry', 'planted', 0), 'retry', 'a suspect that is finished, however,');
update pgmq.q_intake_queue set vt = clock_timestamp() where message ->> 'user_id' = 'old';
select results_eq(
  $$ select message ->> 'user_id', read_ct, attempts, takeovers from tests.take(9, 30) $$, $$ values ('old', 4, 2, 0) $$,
  'is none any more'
);
update pgmq.q_intake_queue set read_ct = 8, vt = clock_timestamp() where message ->> 'user_id' = 'odd';
select is(pg_temp.suspect(), 'odd 9 1 8', 'the takeovers go on being counted until one is finished');
select is(tests.finish('odd', 9, 'dead_letter', 'takeovers: 8'), 'dead_letter', 'as a dead letter');
select is(
  (select array[d.message -> 'takeovers', d.message -> 'final_read_ct', d.message -> 'tried'] from pgmq.q_intake_dlq d),
  array['8', '9', null]::jsonb[], 'it says how often it was taken over'
);

-- No further than the first thousand of a lane.
delete from pgmq.q_intake_queue;
insert into pgmq.q_intake_queue (msg_id, read_ct, vt, message) overriding system value
select (intake.lane_of('s')::bigint << 40) + n, case n when 1001 then 2 else 0 end, clock_timestamp(), '{"pool_id": "s"}'
from generate_series(1, 1001) n;
select is(pg_temp.suspect(), null, 'a suspect behind a thousand messages waits');
delete from pgmq.q_intake_queue where msg_id = (select min(msg_id) from pgmq.q_intake_queue);
select is(pg_temp.suspect(), '3 1 2', 'until its turn comes');

select * from finish();
rollback;
