-- A delivery that stays: retry, outage, untried and validated; and one that goes to the dead letters.
begin;
select plan(41);

create temp table taken as select * from tests.take(0, 0);

select tests.empty_queues();
insert into public.engine_config (pool_id, hold_sec) values ('b', 60);
insert into public.inventory_slots (pool_id) select 'b' from generate_series(1, 6);
select public.claim_resource_and_queue('b', u) from unnest(array['again', 'down', 'valid', 'dead']) u;
insert into taken select * from tests.take(100, 30);
create function pg_temp.hidden_for(p_user text) returns interval language sql
as $$ select q.vt - clock_timestamp() from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user $$;

select is(tests.finish('again', 1, 'retry', 'status 500', 3600000), 'retry', 'a failed delivery says so');
select ok(pg_temp.hidden_for('again') between interval '50 min' and interval '1 hour', 'it is hidden for its delay');
select is(tests.message_of('again') ->> 'last_error', 'status 500', 'what failed is remembered');
select is(tests.message_of('again') -> 'tried', '1', 'and counts');
select is(tests.message_of('again') -> 'seen', '1', 'and does not count as a takeover');
select is((tests.claim_of('b', 'again')).state::text, 'queued', 'its claim waits');
select is((tests.claim_of('b', 'again')).hold_until, now() + interval '60 s', 'its hold runs on');
select is(tests.finish('again', 1, 'retry', 'status 500', 0), 'retry', 'until a worker takes it, the lease can be ended anew');
select is(tests.message_of('again') -> 'tried', '1', 'but the same delivery counts once');
select results_eq(
  $$ select read_ct, attempts, takeovers from tests.take(1, 30) $$, $$ values (2, 2, 0) $$, 'the next delivery is a second attempt'
);
select is(tests.finish('again', 1, 'committed'), 'lost_lease', 'and takes the lease from the first');

select is(tests.finish('down', 1, 'outage', 'ledger unavailable', 0), 'outage', 'a delivery that met an outage says so');
select is(tests.message_of('down') -> 'tried', null, 'it does not count');
select is(tests.message_of('down') ->> 'last_error', null, 'and nothing is held against it');
select results_eq(
  $$ select read_ct, attempts, takeovers from tests.take(1, 30) $$, $$ values (2, 1, 0) $$, 'the next delivery is again the first attempt'
);
update pgmq.q_intake_queue set vt = clock_timestamp() where message ->> 'user_id' = 'down';
select results_eq(
  $$ select read_ct, attempts, takeovers from tests.take(1, 30) $$, $$ values (3, 1, 1) $$, 'one that no worker finishes is a takeover'
);
select is(tests.finish('down', 3, 'outage', null, 0), 'outage', 'a second outage');
select results_eq(
  $$ select read_ct, attempts, takeovers from tests.take(1, 30) $$, $$ values (4, 1, 0) $$, 'does not count, and clears the takeover'
);

-- What a hand wrote there cannot make a message immortal.
update pgmq.q_intake_queue set message = message || '{"seen": 1e12, "tried": -1e12}' where message ->> 'user_id' = 'down';
select is(tests.finish('down', 4, 'retry', 'failed', 0), 'retry', 'a message that says it was seen more often than it was fails');
select is(tests.finish('down', 4, 'retry', 'failed', 0), 'retry', 'told twice');
select results_eq(
  $$ select read_ct, attempts, takeovers from tests.take(1, 30) $$, $$ values (5, 2, 0) $$, 'and its failure counts, once'
);
update pgmq.q_intake_queue set message = message || '{"tried": 1e12}' where message ->> 'user_id' = 'down';
select is(tests.finish('down', 5, 'retry', 'failed', 0), 'retry', 'one that says it was tried more often than it was');
select is(tests.message_of('down') -> 'tried', '5', 'was tried as often as it was delivered');
select results_eq($$ select read_ct, attempts from tests.take(1, 30) $$, $$ values (6, 6) $$, 'and no more');

select is(tests.finish('valid', 1, 'validated'), 'validated', 'a validation is remembered');
select is(tests.message_of('valid') ->> 'state', 'validated', 'in the message');
select is((tests.claim_of('b', 'valid')).state::text, 'validated', 'and in the claim');
select is((tests.claim_of('b', 'valid')).hold_until, null, 'whose hold is over');
select ok(pg_temp.hidden_for('valid') > interval '25 s', 'the lease goes on');
select is(tests.finish('valid', 1, 'committed'), 'committed', 'so that the same delivery can be committed');

select is(tests.finish('dead', 1, 'dead_letter', '23514: no such seat'), 'dead_letter', 'a dead letter says so');
select is(tests.message_of('dead'), null, 'its message is gone');
select results_eq(
  $$ select d.message - 'routed_to_dlq_at' from pgmq.q_intake_dlq d $$,
  $$ select t.message || jsonb_build_object('original_msg_id', t.msg_id, 'final_read_ct', 1, 'takeovers', 0,
       'reason', '23514: no such seat')
     from taken t where t.message ->> 'user_id' = 'dead' $$,
  'it stands in the dead letters with what is known about it'
);
select is((tests.claim_of('b', 'dead')).state::text, 'dead_letter', 'its claim waits for an operator');
select is((tests.claim_of('b', 'dead')).msg_id, (select msg_id from pgmq.q_intake_dlq), 'and knows its letter');
select is(tests.slot_of('dead'), 'RESERVED', 'and keeps its slot');
select is(public.reap_orphaned_slots(interval '0') + public.expire_holds(), 0, 'neither reaper nor expiry frees it');

-- Every verdict on messages that are no objects.
insert into pgmq.q_intake_queue (msg_id, read_ct, vt, message) overriding system value
select -n, 1, clock_timestamp(), m from unnest(array['null', '[1]', '"x"', null]::jsonb[]) with ordinality as a (m, n);
select results_eq(
  format($$ select outcome from public.bridge_finish('{-4,-3,-2,-1}', '{1,1,1,1}', %L, '{r,r,r,r}', '{0,0,0,0}') $$, verdicts),
  verdicts, format('messages that are no objects can end as %s', verdicts)
)
from (values ('{retry,outage,validated,retry}'::text[]), ('{outage,validated,retry,outage}'), ('{untried,untried,untried,untried}'), ('{dead_letter,gone,refused,dead_letter}'))
  v (verdicts);

select * from finish();
rollback;
