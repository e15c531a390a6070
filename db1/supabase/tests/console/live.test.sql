-- What the console watches: numbers that are right while they are small, and cheap when they are not.
begin;
select plan(23);

select tests.empty_queues();
delete from public.inventory_slots;
delete from public.engine_config;

create function pg_temp.level(p_pool_id text) returns text language sql
as $$
  select concat_ws(' ', p ->> 'capacity', p ->> 'available', p ->> 'reserved', p ->> 'consumed')
  from jsonb_array_elements(public.live_sample() -> 'pools') p where p ->> 'pool_id' = p_pool_id
$$;
create function pg_temp.waiting(p_pool_id text) returns text language sql
as $$ select p ->> 'waiting' from jsonb_array_elements(public.live_sample() -> 'pools') p where p ->> 'pool_id' = p_pool_id $$;
create temp table start as select public.live_sample() as sample;
create function pg_temp.grown() returns bigint language sql
as $$ select (public.live_sample() ->> 'enqueued')::bigint - (sample ->> 'enqueued')::bigint from start $$;

insert into public.engine_config (pool_id) values ('bare');
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 10);
insert into public.inventory_slots (pool_id) select 'q' from generate_series(1, 3);
select is(pg_temp.level('p'), '10 10 0 0', 'a pool on sale is all available');
select is(pg_temp.level('bare'), '0 0 0 0', 'a pool without slots has none');
select is(public.live_sample() ->> 'oldest_msg_sec', null, 'an empty queue has no oldest message');

select public.claim_resource_and_queue('p', 'u' || i) from generate_series(1, 4) i;
select public.claim_resource_and_queue('q', 'u' || i) from generate_series(1, 3) i;
select is(public.live_sample() ->> 'queue_depth', '7', 'each claim is on the queue');
select is(pg_temp.grown(), 7::bigint, 'and has been enqueued');
select is(pg_temp.level('p'), '10 6 4 0', 'its slot is reserved, in its own pool');
select is(pg_temp.level('q'), '3 0 3 0', 'also where none is left');
select is(pg_temp.waiting('p'), '4', 'and its message waits');
select ok((public.live_sample() ->> 'oldest_msg_sec')::numeric >= 0, 'the oldest message has an age');

select public.bridge_finish(array_agg(msg_id), array_agg(read_ct), '{committed,dead_letter}', '{null,planted}', '{0,0}')
from tests.take(2, 60);
select is(pg_temp.level('p'), '10 6 3 1', 'a ticket is consumed, a dead letter keeps its slot reserved');
select is(pg_temp.waiting('p'), '2', 'neither waits');
select is(public.live_sample() ->> 'dlq_depth', '1', 'and is counted');

-- Beyond what it looks at one by one it believes what was counted less than 10 seconds ago.
insert into public.inventory_slots (pool_id) select 'large' from generate_series(1, 2500);
select is(pg_temp.level('large'), '2500 2500 0 0', 'a large pool is counted');
update intake.free_counts set free = 2400 where pool_id = 'large';
select is(pg_temp.level('large'), '2500 2400 0 100', 'and not counted again at once');
select ok(
  (select due_at between now() + interval '10 seconds' and clock_timestamp() + interval '1 minute'
   from intake.free_counts where pool_id = 'large'), 'but after 10 seconds'
);
select results_eq(
  $$ select intake.next_count(now(), now() + took) - (now() + took) from unnest('{0 s,0.2 s,6 s}'::interval[]) took $$,
  $$ values (interval '10 seconds'), ('20 seconds'), ('1 minute') $$, 'later where counting took long, and never later than a minute'
);
update intake.free_counts set due_at = clock_timestamp() - interval '1 second' where pool_id = 'large';
select is(pg_temp.level('large'), '2500 2500 0 0', 'when it is due');

delete from intake.pool_marks where pool_id = 'p';
select is(pg_temp.level('p'), '10', 'a pool whose cache is lost has no levels, and watching does not rebuild it');

insert into public.engine_config (pool_id, is_active, opens_at, closes_at) values
  ('draft', false, null, null), ('over', true, null, now() - interval '1 hour'),
  ('announced', false, now() + interval '1 day', null), ('until', true, null, now() + interval '1 hour');
select is(
  public.live_sample() -> 'announced_pools', '["announced", "bare", "large", "p", "q", "until"]',
  'a pool is announced where it is open or has a time at which it opens'
);

-- Another session may be one too; before this one is, it does not count.
create temp table workers as select (public.live_sample() ->> 'bridge_workers')::int as before;
set application_name = 'sluice-worker';
select pg_stat_clear_snapshot();
select is(
  (public.live_sample() ->> 'bridge_workers')::int, (select before + 1 from workers), 'bridge workers are counted by their connections'
);
reset application_name;

set local app.bridge_worker_url = 'http://127.0.0.1:9/bridge-worker';
set local app.service_role_key = 'a-key';
create temp table asked as select intake.trigger_drain() as id, (public.live_sample() ->> 'bridge_workers')::int as before;
insert into net._http_response (id, status_code, timed_out) select id, 401, false from asked;
select is(
  (public.live_sample() ->> 'bridge_workers')::int, (select before from asked), 'an Edge Function that refuses its calls is not one'
);
update net._http_response set status_code = 200 where id = (select id from asked);
select is(
  (public.live_sample() ->> 'bridge_workers')::int, (select before + 1 from asked), 'one that answers them counts as one'
);
update net._http_response set created = now() - interval '4 minutes';
update intake.drain_requests set asked_at = now() - interval '4 minutes';
select is(
  (public.live_sample() ->> 'bridge_workers')::int, (select before from asked), 'for three minutes'
);

select * from finish();
rollback;
