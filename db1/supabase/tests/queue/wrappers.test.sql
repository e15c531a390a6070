-- The queue as workers see it: read, delete, send.
begin;
select plan(11);

-- Messages that are there already are not of this test; reads of one look beyond them.
delete from pgmq.q_intake_queue;
create temp table sent as
select n, public.intake_queue_send(jsonb_build_object('n', n)) as msg_id from generate_series(1, 3) n;

select is((select count(distinct msg_id)::int from sent), 3, 'each message has an id of its own');
create temp table got as select * from public.intake_queue_read(30, 2);
select results_eq(
  $$ select g.msg_id, g.read_ct, g.message from got g order by g.msg_id $$,
  $$ select s.msg_id, 1, jsonb_build_object('n', s.n) from sent s where s.n <= 2 order by s.n $$,
  'a read returns as many messages as asked for, the oldest first'
);
select ok(
  (select bool_and(vt > now() + interval '25 seconds') from got), 'what was read is hidden for the time asked for'
);
select results_eq(
  $$ select message ->> 'n' from public.intake_queue_read(30, 10) $$, array['3'],
  'a second reader gets only what the first has not taken'
);
select is_empty($$ select public.intake_queue_read(30, 10) $$, 'a third reader gets nothing');
update pgmq.q_intake_queue set vt = clock_timestamp() - interval '1 second' where msg_id in (select msg_id from got);
select results_eq(
  $$ select read_ct from public.intake_queue_read(30, 10) $$, array[2, 2],
  'after the timeout the messages come again, and count their deliveries'
);

select bag_eq(
  $$ select d from public.intake_queue_delete((select array_agg(msg_id) || -1::bigint from got)) d $$,
  $$ select msg_id from got $$,
  'delete returns the ids that were there'
);
select is_empty(
  $$ select public.intake_queue_delete((select array_agg(msg_id) from got)) $$, 'a second delete returns nothing'
);
select is((select count(*)::int from pgmq.q_intake_queue), 1, 'the other message is still there');
select is_empty($$ select public.intake_queue_delete('{}') $$, 'deleting nothing deletes nothing');
select is((select count(*)::int from pgmq.q_intake_queue), 1, 'and the message stays');

select * from finish();
rollback;
