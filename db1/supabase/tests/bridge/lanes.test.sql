-- The lane of a message is the upper part of its id: each configured pool has one for life.
begin;
select plan(30);

select tests.empty_queues();
delete from public.engine_config;
insert into public.engine_config (pool_id, max_retries, visibility_timeout_sec, validation_webhook_url, commit_rpc_name, commit_webhook_url, commit_rate_per_sec)
values ('ruled', 3, 7, 'https://example.com/v', 'mine', 'https://example.com/c', 5);
insert into public.engine_config (pool_id) values ('bare');
insert into public.inventory_slots (pool_id) select p from unnest(array['ruled', 'bare', 'slots_only']) p, generate_series(1, 5);
create function pg_temp.lane_of_message(p_user text) returns bigint language sql
as $$ select q.msg_id >> 40 from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user $$;

select ok(intake.lane_of('bare') between 1 and 8191, 'a pool with only a pool_id has a lane');
select isnt(intake.lane_of('bare'), intake.lane_of('ruled'), 'and another has another');
select is(intake.lane_of('slots_only'), 0, 'a pool without a row is in lane 0');
select is(intake.lane_of(null), 0, 'as is what has no pool');
create temp table lane_before as select intake.lane_of('bare') as lane;
select public.pool_change('bare', '{"max_retries": 4}', 0, 'olga');
select is(intake.lane_of('bare'), (select lane from lane_before), 'other rules change no lane');
select tests.refuses(
  $$ select public.pool_change('bare', '{"lane": 17}', 0, 'olga') $$, 'SL001', 'the lane is not a rule'
);

-- However a message comes on the queue, it is in the lane of its pool.
select public.claim_resource_and_queue('bare', 'one');
select count(*) from public.claim_batch(array['bare', 'bare', 'slots_only'], array['two', 'three', 'four'], array[null, null, null]);
select public.intake_queue_send('{"pool_id": "ruled", "user_id": "sent"}');
select pgmq.send('intake_queue', '{"pool_id": "ruled", "user_id": "by hand"}');
select results_eq(
  $$ select u, pg_temp.lane_of_message(u)::int from unnest(array['one', 'two', 'three', 'four', 'sent', 'by hand']) u $$,
  $$ values ('one', intake.lane_of('bare')), ('two', intake.lane_of('bare')), ('three', intake.lane_of('bare')), ('four', 0),
    ('sent', intake.lane_of('ruled')), ('by hand', 0) $$,
  'claims and what is sent are in the lanes of their pools, what is sent past them in lane 0'
);
select is(
  (select array_agg(c.msg_id = q.msg_id) from public.claims c join pgmq.q_intake_queue q on q.message ->> 'claim_id' = c.claim_id::text
   where c.pool_id in ('bare', 'slots_only')), '{t,t,t,t}', 'and their claims know them'
);
select tests.kill('one');
select is(tests.replay('one'), 'replayed', 'a dead letter is replayed');
select is(pg_temp.lane_of_message('one')::int, intake.lane_of('bare'), 'in the lane of its pool');
delete from pgmq.q_intake_queue where message ->> 'user_id' = 'two';
select is(
  public.reconcile_fix((tests.claim_of('bare', 'two')).slot_id, 'claim_without_message', 'olga'), 'fixed', 'a lost message is made again'
);
select is(pg_temp.lane_of_message('two')::int, intake.lane_of('bare'), 'in the lane of its pool');
select ok((select max(msg_id) < 2 ^ 53 from pgmq.q_intake_queue), 'ids are numbers that JavaScript can tell apart');

-- The lanes that are not empty.
select results_eq(
  $$ select * from public.bridge_lanes() $$,
  $$ select * from (values
       (0, null::text, 10, 45, null::text, 'finalize_transaction', null::text, null::int),
       (intake.lane_of('ruled'), 'ruled', 3, 7, 'https://example.com/v', 'mine', 'https://example.com/c', 5),
       (intake.lane_of('bare'), 'bare', 4, 45, null, 'finalize_transaction', null, null)
     ) v order by 1 $$,
  'each lane with messages is told once, with the rules of its pool or the defaults'
);
delete from public.engine_config where pool_id = 'bare';
select results_eq(
  $$ select pool_id, max_retries from public.bridge_lanes() where lane = (select lane from lane_before) $$, $$ values (null::text, 10) $$,
  'a lane whose pool was deleted has the defaults'
);
select is(pg_temp.lane_of_message('three'), (select lane from lane_before)::bigint, 'its messages are where they were');
insert into public.engine_config (pool_id) values ('bare');
select isnt(intake.lane_of('bare'), (select lane from lane_before), 'a pool that is made again has another lane');
delete from pgmq.q_intake_queue where message ->> 'pool_id' = 'ruled';
select is_empty(
  $$ select * from public.bridge_lanes() where pool_id = 'ruled' $$, 'an empty lane is not told'
);
insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value values (-7, now(), '{}');
select is((select min(lane) from public.bridge_lanes()), -1, 'an id below zero has a lane, too');
select is((select message from public.bridge_take('{-1}', '{1}', 30)), '{}', 'of which it can be taken');
delete from pgmq.q_intake_queue;
select is_empty('select * from public.bridge_lanes()', 'an empty queue has no lane');

-- More pools than lanes: they begin anew, and two pools share one.
select is(
  (select array[seqmax, seqmin, seqcycle::int] from pg_sequence where seqrelid = 'public.engine_config_lane_seq'::regclass),
  '{8191,1,1}', 'lanes are numbers from 1 to 8191, and then from 1 again'
);
select throws_ok(
  format('insert into public.engine_config (pool_id, lane) values (''wrong'', %s)', l), '23514', null, format('%s is not a lane', l)
) from unnest(array[0, 8192]) l;
insert into public.engine_config (pool_id, lane) select 'also ruled', lane from public.engine_config where pool_id = 'ruled';
select public.intake_queue_send(jsonb_build_object('pool_id', p)) from unnest(array['also ruled', 'ruled', 'bare']) p;
select results_eq(
  $$ select pool_id, max_retries from public.bridge_lanes() where lane = intake.lane_of('ruled') $$,
  $$ values ('also ruled', 10), ('ruled', 3) $$, 'a shared lane is told with each of its pools'
);
select results_eq(
  $$ select message ->> 'pool_id' from public.bridge_take(array[intake.lane_of('ruled')], '{9}', 30) $$,
  array['also ruled', 'ruled'], 'and the messages of all of them are taken'
);

-- The numbers end before they reach into the lane.
-- Restarted and not set: what setval does is not rolled back with this file.
alter sequence pgmq.q_intake_queue_msg_id_seq restart with 1099511627775;
select is(
  public.intake_queue_send('{"pool_id": "ruled"}') & 1099511627775, 1099511627775, 'the last number is in the lane still'
);
select is((select max(msg_id) >> 40 from pgmq.q_intake_queue where message = '{"pool_id": "ruled"}')::int, intake.lane_of('ruled'), 'of its pool');
select throws_ok(
  $$ select public.claim_resource_and_queue('bare', 'late') $$, '2200H', null, 'after it there is none, and no spilling into the next lane'
);

select * from finish();
rollback;
