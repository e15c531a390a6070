-- A message goes to the dead letters once, with what is known about it.
begin;
select plan(17);

insert into public.inventory_slots (pool_id) select 'dlq' from generate_series(1, 2);
select public.claim_resource_and_queue('dlq', 'ann');
create temp table old as select * from public.claims where pool_id = 'dlq';
create temp table message as select q.* from pgmq.q_intake_queue q join old o on o.msg_id = q.msg_id;

create temp table routed as
select public.intake_route_to_dlq(m.msg_id, m.message || '{"reason": "no answer"}', 11) as dlq_id from message m;
select results_eq(
  $$ select d.message from pgmq.q_intake_dlq d join routed r on r.dlq_id = d.msg_id $$,
  $$ select m.message || jsonb_build_object(
       'reason', 'no answer', 'original_msg_id', m.msg_id, 'final_read_ct', 11, 'routed_to_dlq_at', now()
     ) from message m $$,
  'the dead letter is the payload with the message id, the read count and the time'
);
select is_empty(
  $$ select from pgmq.q_intake_queue q join old o on o.msg_id = q.msg_id $$, 'the message has left the queue'
);
select results_eq(
  $$ select c.state::text, c.msg_id, c.freed_at from public.claims c where c.pool_id = 'dlq' $$,
  $$ select 'dead_letter', r.dlq_id, null::timestamptz from routed r $$,
  'the claim waits as dead_letter and names its dead letter'
);
select is(
  (select s.status::text from public.inventory_slots s join old o on o.slot_id = s.id), 'RESERVED',
  'the slot stays with its claim'
);

create temp table before as select tests.state() as state;
select is(
  (select public.intake_route_to_dlq(m.msg_id, m.message, 12) from message m), null, 'a second routing returns null'
);
select is(public.intake_route_to_dlq(-1, '{}', 1), null, 'routing a message that is not there returns null');
select is(tests.state(), (select state from before), 'and neither changes anything');

-- Another worker has taken the message since.
select public.claim_resource_and_queue('dlq', 'bob');
create temp table bob as select * from public.claims where user_id = 'bob';
select count(*) from public.intake_queue_read(0, 10000);
select count(*) from public.intake_queue_read(0, 10000);
update before set state = tests.state();
select is(
  (select public.intake_route_to_dlq(b.msg_id, '{}', 1) from bob b), null, 'whose read was taken over routes nothing'
);
select is(tests.state(), (select state from before), 'and nothing changes');
-- A second message of the same claim, which is not the one the claim waits for.
create temp table double as
select public.intake_queue_send(q.message) as msg_id from pgmq.q_intake_queue q join bob b on b.msg_id = q.msg_id;
select isnt((select public.intake_route_to_dlq(d.msg_id, '{}', 1) from double d), null, 'a copy of a message can be routed');
select is((select c.state::text from public.claims c join bob using (claim_id)), 'queued', 'its claim goes on by its own message');
select isnt(
  (select public.intake_route_to_dlq(b.msg_id, '{}', 2) from bob b), null, 'who holds the message routes it'
);

create function pg_temp.route(p_payload jsonb) returns jsonb language plpgsql as $$
declare
  v_dlq_id bigint := public.intake_route_to_dlq(public.intake_queue_send('{}'), p_payload, 1);
begin
  return (select d.message from pgmq.q_intake_dlq d where d.msg_id = v_dlq_id);
end
$$;
select is(pg_temp.route(null) -> 'payload', 'null', 'a payload of null is wrapped');
select is(pg_temp.route('[1, 2]') -> 'payload', '[1, 2]', 'an array is wrapped');
select is(pg_temp.route('"text"') -> 'payload', '"text"', 'a text is wrapped');
select is(pg_temp.route('[]') ->> 'final_read_ct', '1', 'a wrapped payload has its read count');
select is(
  pg_temp.route('{"a": 1, "final_read_ct": 99}') - 'original_msg_id' - 'routed_to_dlq_at',
  '{"a": 1, "final_read_ct": 1}',
  'an object is not wrapped, and what it says about itself does not count'
);

select * from finish();
rollback;
