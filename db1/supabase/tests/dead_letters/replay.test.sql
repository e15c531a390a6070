-- A dead letter goes round again: once, by the same claim where that still waits, else by a new decision.
begin;
select plan(38);

select tests.empty_queues();
insert into public.engine_config (pool_id, hold_sec) values ('p', 60);
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 5);
select public.claim_resource_and_queue('p', u), tests.kill(u) from unnest(array['ann', 'sold', 'freed', 'full']) u;
create temp table old as select c.*, tests.letter_of(c.user_id) as letter from public.claims c where c.pool_id = 'p';
create temp table before as select tests.state() as state;

select is(tests.replay('ann', true), 'would_replay', 'a dry run says what would be replayed');
select results_eq(
  $$ select outcome from public.replay_dead_letters('{-1}', 'olga', p_dry_run => true) $$, array['not_found'], 'and what is not there'
);
select is(tests.state(), (select state from before), 'and changes nothing, not even the audit log');
select is_empty($$ select * from public.replay_dead_letters('{}', 'olga') $$, 'replaying nothing answers nothing');
select throws_ok(
  $$ select * from public.replay_dead_letters(array[tests.letter_of('ann')], null) $$, '23502', null, 'an operator must give a name'
);
select is(tests.state(), (select state from before), 'and nothing changes');

update public.claims set hold_until = now() - interval '1 minute' where user_id = 'ann';
select is(tests.replay('ann'), 'replayed', 'a dead letter whose claim waits is replayed');
select is((tests.claim_of('p', 'ann')).state::text, 'queued', 'its claim is queued');
select results_eq(
  $$ select q.message, q.read_ct from pgmq.q_intake_queue q where q.msg_id = (tests.claim_of('p', 'ann')).msg_id $$,
  $$ select jsonb_build_object('pool_id', 'p', 'user_id', 'ann', 'claim_id', o.claim_id, 'resource_id', o.slot_id,
       'verified', true, 'state', 'queued', 'replayed_from', o.letter), 0 from old o where o.user_id = 'ann' $$,
  'its message is as new, and says where it came from'
);
select is(tests.letter_of('ann'), null, 'the letter is gone');
select is(
  (select a.message ->> 'reason' from pgmq.a_intake_dlq a join old o on o.letter = a.msg_id where o.user_id = 'ann'),
  'planted', 'its last form is in the archive'
);
select results_eq(
  $$ select actor, action, subject, reason, details ->> 'outcome', details ->> 'claim_id', details #>> '{letter,reason}'
     from audit.audit_logs $$,
  $$ select 'olga', 'dead_letter_replay', 'dead letter ' || o.letter, 'fixed', 'replayed', o.claim_id::text, 'planted'
     from old o where o.user_id = 'ann' $$,
  'the audit log says who, what and why'
);
select is(public.expire_holds(), 0, 'a hold that ran out meanwhile does not end it: the operator has decided');
update before set state = tests.state();
select results_eq(
  $$ select d.outcome from old o cross join lateral public.replay_dead_letters(array[o.letter], 'olga') d where o.user_id = 'ann' $$,
  array['not_found'], 'a second replay finds nothing'
);
select is(tests.state(), (select state from before), 'and changes nothing');

update public.claims set state = 'committed' where user_id = 'sold';
update public.inventory_slots set status = 'CONSUMED' where locked_by = 'sold';
select is(tests.replay('sold'), 'claim_is_committed', 'a letter whose claim became a ticket is not replayed');
select is(tests.letter_of('sold') is not null, true, 'it stays');
select is((tests.claim_of('p', 'sold')).state::text, 'committed', 'as does the ticket');
select is((select count(*)::int from audit.audit_logs), 2, 'the attempt is in the audit log');

-- Released behind its back, with a slot to spare.
select intake.free_claims(array[(tests.claim_of('p', 'freed')).claim_id], 'released', 'by hand');
select public.claim_resource_and_queue('p', 'next_buyer');
select is(tests.replay('freed'), 'claimed', 'a letter whose claim was released gets a new decision');
select isnt(
  (tests.claim_of('p', 'freed')).claim_id, (select claim_id from old where user_id = 'freed'), 'which is a new claim'
);
select is((tests.claim_of('p', 'freed')).state::text, 'queued', 'that is on its way');
select is(
  (select q.message ->> 'claim_id' from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'freed'),
  (tests.claim_of('p', 'freed')).claim_id::text, 'with a message of its own'
);
select is(tests.letter_of('freed'), null, 'the letter is gone');

select intake.free_claims(array[(tests.claim_of('p', 'full')).claim_id], 'released', 'by hand');
select public.claim_resource_and_queue('p', 'last_buyer');
select is(tests.replay('full'), 'sold_out', 'where no slot is left, the answer is sold out');
select is(tests.letter_of('full') is not null, true, 'and the letter stays');
select is((tests.claim_of('p', 'full')).state::text, 'released', 'as does the end of its claim');
select public.claim_resource_and_queue('p', u) from unnest(array['x', 'y']) u;
select is(
  (select count(*)::int from public.claims where pool_id = 'p' and freed_at is null), 5, 'nothing is sold twice'
);
update public.engine_config set is_active = false where pool_id = 'p';
select is(tests.replay('full'), 'closed', 'a new decision is made by the rules of the pool');
update public.engine_config set is_active = true, max_per_user = 1 where pool_id = 'p';
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 2);
select is(tests.replay('full'), 'claimed', 'the letter can be tried again once there is room');
select is((select count(*)::int from audit.audit_logs), 6, 'each attempt has its audit row');

-- A batch answers per id, once per id.
select public.claim_resource_and_queue('p', 'one'), tests.kill('one');
select results_eq(
  $$ select d.outcome from public.replay_dead_letters(array[null, tests.letter_of('one'), 9999999, tests.letter_of('one'), -5], 'olga') d $$,
  array['not_found', 'replayed', 'not_found'], 'a batch answers per id, and counts an id once'
);
select is((select count(*)::int from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'one'), 1, 'and sends it once');
select is((select count(*)::int from audit.audit_logs), 7, 'with one audit row');

-- The claim was validated before it became a dead letter, so a worker may have carried it: it is not validated again.
select public.intake_route_to_dlq(q.msg_id, q.message || '{"state": "validated"}', 3)
from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'one';
select is(tests.replay('one'), 'replayed', 'a letter that had been validated is replayed');
select is(
  (select q.message ->> 'state' from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'one'), 'validated',
  'as validated'
);
select is((tests.claim_of('p', 'one')).state::text, 'validated', 'in claim and message alike');
select is(
  (select attempts from tests.take(1000, 30) where message ->> 'user_id' = 'one'), 1, 'with all its attempts before it'
);

select * from finish();
rollback;
