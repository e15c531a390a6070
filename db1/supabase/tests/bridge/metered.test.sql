-- Of a pool with commit_rate_per_sec no more is taken than that allows, by all workers together.
begin;
select plan(18);

select tests.empty_queues();
insert into public.engine_config (pool_id, commit_rate_per_sec) values ('metered', 5);
insert into public.engine_config (pool_id) values ('free');
select public.intake_queue_send(jsonb_build_object('pool_id', p, 'n', n))
from unnest(array['metered', 'free']) p, generate_series(1, 20) n;
create function pg_temp.taken(p_pool text, p_wanted int) returns bigint language sql
as $$ select count(*) from public.bridge_take(array[intake.lane_of(p_pool)], array[p_wanted], 600) $$;
-- A bucket last filled in an hour does not fill, however long the test takes.
create function pg_temp.stop_filling() returns void language sql
as $$ update intake.pool_allowances set filled_at = clock_timestamp() + interval '1 hour' $$;

select is(pg_temp.taken('free', 15), 15::bigint, 'a pool without a ceiling gives all that is wanted');
select is_empty('select * from intake.pool_allowances', 'and has no bucket');
select is(pg_temp.taken('metered', 3), 3::bigint, 'a full bucket gives what is wanted');
select pg_temp.stop_filling();
select is(pg_temp.taken('metered', 100), 2::bigint, 'what is left of a second''s worth, and no more');
select pg_temp.stop_filling();
select is(pg_temp.taken('metered', 100), 0::bigint, 'an empty bucket gives nothing');
select results_eq(
  $$ select message ->> 'pool_id', count(*) from public.bridge_take(
       array[intake.lane_of('metered'), intake.lane_of('free')], '{9,2}', 600) group by 1 $$,
  $$ values ('free', 2::bigint) $$, 'while another lane gives its own'
);
update intake.pool_allowances set tokens = 0, filled_at = clock_timestamp() - interval '0.4 s';
create temp table filled as select p.filled_at, pg_temp.taken('metered', 100) as taken from intake.pool_allowances p;
select ok(
  taken between 2 and floor(5 * extract(epoch from clock_timestamp() - filled_at)), 'it fills with time'
) from filled;
update intake.pool_allowances set filled_at = clock_timestamp() - interval '1 hour';
select is(pg_temp.taken('metered', 100), 5::bigint, 'but never beyond a second''s worth');
select pg_temp.stop_filling();
select is(pg_temp.taken('metered', 1), 0::bigint, 'a clock that goes back takes nothing away and gives nothing');

-- A pool of which nothing may be taken costs a look, however much of it waits.
select public.intake_queue_send('{"pool_id": "metered", "is_many": true}') from generate_series(1, 3000);
update intake.pool_allowances set tokens = 0, filled_at = clock_timestamp() + interval '1 hour';
select ok(
  tests.is_cheap(format('public.bridge_take(array[%s], ''{5000}'', 600)', intake.lane_of('metered'))),
  'the backlog of a pool whose bucket is empty is not read'
);
delete from pgmq.q_intake_queue where message ? 'is_many';

-- Only what is really taken is spent.
update intake.pool_allowances set tokens = 5, filled_at = clock_timestamp() + interval '1 hour';
update pgmq.q_intake_queue set vt = clock_timestamp() + interval '1 hour';
select is(pg_temp.taken('metered', 4), 0::bigint, 'a look at a lane of which nothing can be taken');
select is((select tokens from intake.pool_allowances), 5::double precision, 'spends nothing');
update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = 2
where msg_id = (select min(msg_id) from pgmq.q_intake_queue where message ->> 'pool_id' = 'metered');
select is(
  (select takeovers from public.bridge_take_suspect(array[intake.lane_of('metered')], 600)), 2, 'a suspect of such a pool is taken'
);
select is((select tokens from intake.pool_allowances), 4::double precision, 'and spent');

-- Pools that share a lane.
insert into public.engine_config (pool_id, lane) values ('beside', intake.lane_of('metered'));
select public.intake_queue_send('{"pool_id": "beside"}');
update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = 0;
update intake.pool_allowances set tokens = 2, filled_at = clock_timestamp() + interval '1 hour';
create function pg_temp.shared(p_wanted int) returns text language sql as $$
  select string_agg(concat(t.pool_id, ' ', t.n), ', ' order by t.pool_id) from (
    select message ->> 'pool_id' as pool_id, count(*) as n
    from public.bridge_take(array[intake.lane_of('metered')], array[p_wanted], 600) group by 1) t
$$;
select is(pg_temp.shared(10), 'metered 2', 'where pools share a lane, the ceiling holds for its own pool');
update intake.pool_allowances set tokens = 0, filled_at = clock_timestamp() + interval '1 hour';
select is(pg_temp.shared(10), 'beside 1', 'and the other is not held up by it');
select is(pg_temp.shared(10), null, 'which then has nothing left');
update public.engine_config set commit_rate_per_sec = null where pool_id = 'metered';
select is(pg_temp.shared(30), 'metered 18', 'without the ceiling all is taken');

select * from finish();
rollback;
