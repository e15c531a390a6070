-- A delivery in the inbox: taken under a lease, and ended once.
begin;
select plan(22);

delete from pgmq.q_event_inbox;
delete from pgmq.q_event_inbox_dlq;

create function pg_temp.accept(p_door text) returns bigint language sql as $$
  select public.inbox_accept(jsonb_build_array(jsonb_build_object('kind', 'event', 'door', p_door, 'received_at', now())));
$$;
create function pg_temp.finish(p_msg_id bigint, p_read_ct int, p_verdict text, p_reason text default null) returns text language sql as $$
  select f.outcome from public.inbox_finish(array[p_msg_id], array[p_read_ct], array[p_verdict], array[p_reason]) f;
$$;
create function pg_temp.due() returns void language sql as $$ update pgmq.q_event_inbox set vt = clock_timestamp() $$;

select throws_ok($$ select public.inbox_accept('[{"kind": "fax", "door": "a", "received_at": "x"}]') $$, 'SL001', null, 'only events and calls are taken');
select is_empty('select public.inbox_lanes()', 'an empty inbox has no lane');
select pg_temp.accept('one');
select isnt_empty('select public.inbox_lanes()', 'one with a delivery has');
create temp table taken as select * from public.inbox_take(10, 60);
select results_eq('select read_ct, attempts, takeovers from taken', $$ values (1, 0, 0) $$, 'a first delivery has no attempts behind it');
select is_empty('select * from public.inbox_take(10, 60)', 'it is leased: the next take does not get it');
select isnt_empty('select public.inbox_lanes()', 'a hidden one keeps the lane');
select is((select pg_temp.finish(msg_id, 2, 'recorded') from taken), 'lost_lease', 'a finish that names another delivery changes nothing');
select throws_ok($$ select pg_temp.finish(1, 1, 'perhaps') $$, 'SL001', null, 'a verdict has to be known');
select is((select pg_temp.finish(msg_id, 1, 'outage', 'away') from taken), 'outage', 'an outage hands it back');
select pg_temp.due();
select results_eq('select read_ct, attempts, takeovers from public.inbox_take(10, 60)', $$ values (2, 0, 0) $$, 'and counts for nothing');
select is((select pg_temp.finish(msg_id, 2, 'handed_back') from taken), 'handed_back', 'a worker that stops hands it back');
select results_eq('select read_ct, attempts, takeovers from public.inbox_take(10, 60)', $$ values (3, 0, 0) $$, 'due at once, and uncounted');
select pg_temp.due();
select results_eq('select read_ct, attempts, takeovers from public.inbox_take(10, 60)', $$ values (4, 0, 1) $$, 'a worker that dies is a takeover');
select pg_temp.due();
select is_empty('select * from public.inbox_take(10, 60)', 'after the second it is a suspect, and not taken with others');
select results_eq('select read_ct, takeovers from public.inbox_take_suspect(60)', $$ values (5, 2) $$, 'but alone');
select is((select pg_temp.finish(msg_id, 5, 'recorded') from taken), 'recorded', 'recorded is the end');
select is((select pg_temp.finish(msg_id, 5, 'recorded') from taken), 'lost_lease', 'which comes once');

select pg_temp.accept('two');
truncate taken;
do $$
begin
  for i in 1..10 loop
    perform pg_temp.due();
    insert into taken select * from public.inbox_take(10, 60);
    perform pg_temp.finish(t.msg_id, t.read_ct, 'failed', 'no ' || i) from taken t order by t.read_ct desc limit 1;
  end loop;
end
$$;
select is((select max(attempts) from taken), 9, 'what DB2 refuses is tried ten times');
select is_empty('select * from pgmq.q_event_inbox', 'and then it has left the inbox');
select results_eq(
  $$ select door, attempts, error from public.inbox_list(true) $$, $$ values ('two', 10, 'no 10') $$, 'but among its dead letters, with the reason'
);
select pg_temp.accept('three');
insert into taken select * from public.inbox_take(10, 60);
select is(
  (select pg_temp.finish(t.msg_id, t.read_ct, 'dead_letter', 'for good') from taken t order by t.msg_id desc limit 1), 'dead_letter',
  'a refusal for good is a dead letter at once'
);
select results_eq(
  $$ select intake.inbox_level() ->> 'waiting', intake.inbox_level() ->> 'oldest_sec', intake.inbox_level() ->> 'dead_letters' $$,
  $$ values ('0', null, '2') $$, 'the level tells waiting and dead'
);

select * from finish();
rollback;
