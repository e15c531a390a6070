-- The claim, the queue's front and the metrics snapshot, as the first caller meets them.
begin;
select plan(18);

insert into public.engine_config (pool_id) values ('pool');
insert into public.inventory_slots (pool_id) select 'pool' from generate_series(1, 3);
create temp table depth as select queue_length from pgmq.metrics('intake_queue');
create temp table taken as select public.claim_resource_and_queue('pool', 'user') as id;

select isnt((select id from taken), null, 'a claim returns a uuid while slots are available');
select results_eq(
  $$ select s.status::text, s.locked_by from public.inventory_slots s join taken t on t.id = s.id $$,
  $$ values ('RESERVED', 'user') $$,
  'the claimed slot is RESERVED and locked by its buyer'
);
select isnt(
  (select s.locked_at from public.inventory_slots s join taken t on t.id = s.id), null,
  'the claimed slot says since when it is held'
);
select is(
  (select m.queue_length - d.queue_length from pgmq.metrics('intake_queue') m, depth d)::int, 1,
  'the claim put one message on the queue'
);
select results_eq(
  $$ select q.message ->> 'pool_id', q.message ->> 'user_id', q.message ->> 'state'
     from pgmq.q_intake_queue q join taken t on t.id::text = q.message ->> 'resource_id' $$,
  $$ values ('pool', 'user', 'queued') $$,
  'the message names pool, slot, user and state'
);

select isnt(public.claim_resource_and_queue('pool', 'user'), null, 'the second of three slots is sold');
select isnt(public.claim_resource_and_queue('pool', 'other'), null, 'the third of three slots is sold');
select is(public.claim_resource_and_queue('pool', 'late'), null, 'a claim on a sold-out pool returns null');
select is(public.claim_resource_and_queue('pool', 'later'), null, 'a sold-out pool stays sold out');
select is(
  (select m.queue_length - d.queue_length from pgmq.metrics('intake_queue') m, depth d)::int, 3,
  'the queue has grown by as many messages as there were claims'
);

select is(
  (select count(*)::int from public.intake_queue_read(30, 10000) where message ->> 'pool_id' = 'pool'), 3,
  'intake_queue_read returns the messages'
);
create temp table sent as
select public.intake_queue_send('{"pool_id": "pool", "resource_id": "by-hand", "user_id": "u"}') as msg_id;
select isnt((select msg_id from sent), null, 'intake_queue_send returns a message id');

create temp table routed as
select public.intake_route_to_dlq(s.msg_id, '{"resource_id": "by-hand"}', 11) as dlq_id from sent s;
select isnt((select dlq_id from routed), null, 'intake_route_to_dlq returns the id of the dead letter');
select is_empty(
  $$ select from pgmq.q_intake_queue q join sent s on s.msg_id = q.msg_id $$, 'a routed message has left the queue'
);
select is(
  (select d.message ->> 'resource_id' from pgmq.q_intake_dlq d join routed r on r.dlq_id = d.msg_id), 'by-hand',
  'a routed message stands in the dead letters'
);

insert into public.engine_config (pool_id, is_active) values ('asleep', false);
insert into public.inventory_slots (pool_id) select 'pool' from generate_series(1, 2);
select lives_ok($$ select public.snapshot_engine_metrics() $$, 'a snapshot can be taken');
select is(
  (select count(*)::int from public.engine_metrics where captured_at = now()),
  (select count(*)::int from public.engine_config where is_active),
  'a snapshot has one row for each active pool'
);
select results_eq(
  $$ select available_slots, reserved_slots, consumed_slots
     from public.engine_metrics where pool_id = 'pool' and captured_at = now() $$,
  $$ values (2, 3, 0) $$,
  'the metrics row counts available and reserved slots'
);

select * from finish();
rollback;
