-- A delivery that stays: retry, outage, untried and validated; and one that goes to the dead letters.
begin;
select plan(38);

-- All that a finish can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create temp table taken as select * from public.bridge_take(0, 0);

-- Ends the delivery of one user's message in pool "b" with a verdict, under the lease that read_ct names.
create function pg_temp.finish(
  p_user text, p_read_ct int, p_verdict text, p_reason text default null, p_delay_ms int default 0
)
returns text
language sql
as $$
  select f.outcome
  from taken t
  cross join lateral public.bridge_finish(
    array[t.msg_id], array[p_read_ct], array[p_verdict], array[p_reason], array[p_delay_ms]
  ) f
  where t.message ->> 'user_id' = p_user;
$$;

create function pg_temp.claim_of(p_user text) returns public.claims language sql
as $$ select c from public.claims c where c.pool_id = 'b' and c.user_id = p_user $$;
create function pg_temp.slot_of(p_user text) returns text language sql
as $$ select s.status::text from public.inventory_slots s join taken t on s.id = (t.message ->> 'resource_id')::uuid
  where t.message ->> 'user_id' = p_user $$;
create function pg_temp.message_of(p_user text) returns jsonb language sql
as $$ select q.message from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user $$;

delete from pgmq.q_intake_queue;
delete from pgmq.q_intake_dlq;
insert into public.engine_config (pool_id, hold_sec) values ('b', 60);
insert into public.inventory_slots (pool_id) select 'b' from generate_series(1, 6);
select public.claim_resource_and_queue('b', u) from unnest(array['again', 'down', 'valid', 'dead']) u;
insert into taken select * from public.bridge_take(100, 30);
create function pg_temp.hidden_for(p_user text) returns interval language sql
as $$ select q.vt - clock_timestamp() from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user $$;

select is(pg_temp.finish('again', 1, 'retry', 'status 500', 3600000), 'retry', 'a failed delivery says so');
select ok(pg_temp.hidden_for('again') between interval '50 min' and interval '1 hour', 'it is hidden for its delay');
select is(pg_temp.message_of('again') ->> 'last_error', 'status 500', 'what failed is remembered');
select is(pg_temp.message_of('again') ->> 'forgiven', null, 'and counts');
select is((pg_temp.claim_of('again')).state::text, 'queued', 'its claim waits');
select is((pg_temp.claim_of('again')).hold_until, now() + interval '60 s', 'its hold runs on');
select is(pg_temp.finish('again', 1, 'retry', 'status 500', 0), 'retry', 'until somebody takes it, the lease can be ended anew');
select results_eq(
  $$ select read_ct, attempts from public.bridge_take(1, 30) $$, $$ values (2, 2) $$, 'the next delivery is a second attempt'
);
select is(pg_temp.finish('again', 1, 'committed'), 'lost_lease', 'and takes the lease from the first');

select is(pg_temp.finish('down', 1, 'outage', 'ledger unavailable', 0), 'outage', 'a delivery that met an outage says so');
select is(pg_temp.message_of('down') ->> 'forgiven', '1', 'it is forgiven');
select is(pg_temp.message_of('down') ->> 'last_error', null, 'and nothing is held against it');
select results_eq(
  $$ select read_ct, attempts from public.bridge_take(1, 30) $$, $$ values (2, 1) $$, 'the next delivery is again the first attempt'
);
select is(pg_temp.finish('down', 2, 'outage', null, 0), 'outage', 'a second outage');
select results_eq(
  $$ select read_ct, attempts from public.bridge_take(1, 30) $$, $$ values (3, 1) $$, 'is forgiven as well'
);


-- What a hand wrote there cannot make a message immortal.
update pgmq.q_intake_queue set message = message || '{"forgiven": 1e12}' where message ->> 'user_id' = 'down';
select is(pg_temp.finish('down', 3, 'retry', 'failed', 0), 'retry', 'a message with more forgiven deliveries than it had fails');
select is(pg_temp.message_of('down') ->> 'forgiven', '2', 'then only those before this one are forgiven');
select results_eq(
  $$ select read_ct, attempts from public.bridge_take(1, 30) $$, $$ values (4, 2) $$, 'so that its failure counts'
);
update pgmq.q_intake_queue set message = message || '{"forgiven": 1e12}' where message ->> 'user_id' = 'down';
select is(pg_temp.finish('down', 4, 'outage', null, 0), 'outage', 'the same with an outage');
select is(pg_temp.message_of('down') ->> 'forgiven', '4', 'forgives all deliveries there were, and no more');
select results_eq(
  $$ select read_ct, attempts from public.bridge_take(1, 30) $$, $$ values (5, 1) $$, 'and the next is a first attempt'
);

select is(pg_temp.finish('valid', 1, 'validated'), 'validated', 'a validation is remembered');
select is(pg_temp.message_of('valid') ->> 'state', 'validated', 'in the message');
select is((pg_temp.claim_of('valid')).state::text, 'validated', 'and in the claim');
select is((pg_temp.claim_of('valid')).hold_until, null, 'whose hold is over');
select ok(pg_temp.hidden_for('valid') > interval '25 s', 'the lease goes on');
select is(pg_temp.finish('valid', 1, 'committed'), 'committed', 'so that the same delivery can be committed');

select is(pg_temp.finish('dead', 1, 'dead_letter', '23514: no such seat'), 'dead_letter', 'a dead letter says so');
select is(pg_temp.message_of('dead'), null, 'its message is gone');
select results_eq(
  $$ select d.message - 'routed_to_dlq_at' from pgmq.q_intake_dlq d $$,
  $$ select t.message || jsonb_build_object('original_msg_id', t.msg_id, 'final_read_ct', 1, 'reason', '23514: no such seat')
     from taken t where t.message ->> 'user_id' = 'dead' $$,
  'it stands in the dead letters with what is known about it'
);
select is((pg_temp.claim_of('dead')).state::text, 'dead_letter', 'its claim waits for an operator');
select is((pg_temp.claim_of('dead')).msg_id, (select msg_id from pgmq.q_intake_dlq), 'and knows its letter');
select is(pg_temp.slot_of('dead'), 'RESERVED', 'and keeps its slot');
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
