-- A letter whose slot the ledger has sold to another user never puts that slot back on sale.
begin;
select plan(37);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'c' from generate_series(1, 4);
select public.claim_resource_and_queue('c', u) from unnest(array['ann', 'bob', 'cyd']) u;
create temp table claim as select * from public.claims where pool_id = 'c';
create function pg_temp.discard(p_user text, p_dry_run boolean default false) returns text language sql
as $$ select outcome from public.discard_dead_letters(array[tests.letter_of(p_user)], 'olga', 'why', p_dry_run) $$;
create function pg_temp.slot_of(p_user text) returns uuid language sql as $$ select slot_id from claim where user_id = p_user $$;
create function pg_temp.status(p_user text) returns text language sql
as $$ select status::text from public.inventory_slots where id = pg_temp.slot_of(p_user) $$;
create function pg_temp.state_of(p_user text) returns text language sql
as $$ select c.state::text from public.claims c join claim o using (claim_id) where o.user_id = p_user $$;
create function pg_temp.fix(p_user text, p_owner text, p_claim uuid) returns text language sql
as $$ select public.reconcile_fix(pg_temp.slot_of(p_user), 'ticket_of_another_claim', 'olga',
  jsonb_build_object('claim_id', p_claim, 'user_id', p_owner)) $$;

select count(*) from tests.take(100, 30);
select is(
  (select string_agg(f.outcome, ' ') from (
     select array_agg(msg_id) as ids, array_agg(case user_id when 'ann' then 'ticket_conflict' when 'bob' then 'SL020: slot' else 'max_retries' end)
       as reasons from claim) t
   cross join lateral public.bridge_finish(t.ids, '{1,1,1}', '{dead_letter,dead_letter,dead_letter}', t.reasons, '{0,0,0}') f),
  'dead_letter dead_letter dead_letter', 'three claims are dead letters, two because the ledger has others'' tickets'
);
select is(pg_temp.discard(u, true), 'ticket_conflict', 'a dry run says that it cannot be discarded yet') from unnest(array['ann', 'bob']) u;
select is((select count(*)::int from audit.audit_logs), 0, 'without an audit row');
select is(pg_temp.discard(u), 'ticket_conflict', 'as does a discard') from unnest(array['ann', 'bob']) u;
select is((select count(*)::int from audit.audit_logs), 2, 'which is in the audit log');
select is(pg_temp.state_of('ann'), 'dead_letter', 'the claim still waits');
select is(tests.letter_of('ann') is not null, true, 'with its letter');
select is(public.reap_orphaned_slots(interval '-1 hour') + public.expire_holds(), 0, 'neither reaper nor expiry frees its slot');
truncate public.inventory_slots;
select is(intake.ensure_inventory() > 0, true, 'after a crash the slots are rebuilt');
select is(pg_temp.status('ann'), 'RESERVED', 'and the slot is not offered');
select is(pg_temp.discard('cyd'), 'ending', 'a letter with another reason can be discarded');
select is(public.finish_ends(array[(tests.claim_of('c', 'cyd')).claim_id], '{voided}'), 1, 'and is, when the ledger knows');
select is(pg_temp.status('cyd'), 'AVAILABLE', 'and frees its slot');

-- The repair gives the slot to the user whom the ledger sold it to.
select is(pg_temp.fix('ann', 'zed', (select claim_id from claim where user_id = 'bob')), 'unchanged', 'a claim of another slot gets no second one');
select is(pg_temp.state_of('ann'), 'dead_letter', 'and the claim waits as before');
select is(pg_temp.fix('ann', 'zed', '00000000-0000-4000-8000-000000000007'), 'fixed', 'the owner in the ledger is put right');
select results_eq(
  $$ select user_id::text, state::text from public.claims where slot_id = pg_temp.slot_of('ann') order by freed_at nulls first $$,
  $$ values ('zed', 'committed'), ('ann', 'discarded') $$, 'the ticket has its claim, and the claim in its way has ended'
);
select is(pg_temp.status('ann'), 'CONSUMED', 'its slot is consumed');
select is(pg_temp.fix('ann', 'zed', '00000000-0000-4000-8000-000000000007'), 'unchanged', 'a second repair finds nothing to do');
select is(pg_temp.discard('ann'), 'discarded', 'now the letter can be discarded');
select is(pg_temp.status('ann'), 'CONSUMED', 'and the slot stays sold');
select is(
  public.reconcile_fix(pg_temp.slot_of('ann'), 'ticket_of_another_claim', 'olga',
    '{"claim_id": "00000000-0000-4000-8000-000000000008", "user_id": "eve"}'),
  'unchanged', 'a committed claim never gives way'
);

-- By hand, and so without a claim.
select pgmq.send('intake_dlq', jsonb_build_object(
  'pool_id', 'c', 'resource_id', s.id, 'user_id', 'hand', 'reason', 'ticket_conflict'))
from public.inventory_slots s where s.pool_id = 'c' and s.status = 'AVAILABLE' limit 1;
update public.inventory_slots s set status = 'RESERVED', locked_at = now()
from pgmq.q_intake_dlq d where d.message ->> 'user_id' = 'hand' and s.id = (d.message ->> 'resource_id')::uuid;
select is(pg_temp.discard('hand'), 'ticket_conflict', 'a letter by hand is not discarded either while its slot has no live claim');
insert into public.claims (claim_id, pool_id, slot_id, user_id, state)
select (d.message ->> 'resource_id')::uuid, 'c', (d.message ->> 'resource_id')::uuid, 'owner', 'committed'
from pgmq.q_intake_dlq d where d.message ->> 'user_id' = 'hand';
select is(pg_temp.discard('hand'), 'discarded', 'once a committed claim does, it is');

-- A letter that is not the one its claim waits for.
select pgmq.send('intake_dlq', (select d.message || '{"user_id": "copy", "reason": "planted"}' from pgmq.q_intake_dlq d where d.message ->> 'user_id' = 'bob'));
select is(
  (select outcome from public.replay_dead_letters(array[tests.letter_of('copy')], 'olga')), 'claim_is_dead_letter',
  'a copy of a letter is not replayed: the claim waits with another'
);
select is(pg_temp.discard('copy'), 'discarded', 'a copy of a letter can be discarded');
select is(pg_temp.state_of('bob'), 'dead_letter', 'and its claim waits with its own letter');
select is(pg_temp.status('bob'), 'RESERVED', 'and keeps its slot');
update public.claims set state = 'committed' where user_id = 'bob';
select is(pg_temp.discard('bob'), 'discarded', 'once the claim itself is a ticket, its letter can be discarded');

-- A message that only names another user's claim cannot drag it into the dead letters.
insert into public.inventory_slots (pool_id) values ('c');
select public.claim_resource_and_queue('c', 'dee');
insert into claim select * from public.claims where user_id = 'dee';
create temp table forged as
select public.intake_queue_send(jsonb_build_object(
  'claim_id', claim_id, 'resource_id', slot_id, 'pool_id', 'c', 'user_id', 'forger')) as msg_id from claim where user_id = 'dee';
select count(*) from tests.take(100, 30);
select is(
  (select f.outcome from forged
   cross join lateral public.bridge_finish(array[msg_id], '{1}', '{dead_letter}', '{mismatch}', '{0}') f),
  'dead_letter', 'a message that names another user''s claim is a dead letter'
);
select is(pg_temp.state_of('dee'), 'queued', 'the claim goes on by its own message');
select is(pg_temp.discard('forger'), 'discarded', 'the letter is discarded');
select is(pg_temp.state_of('dee'), 'queued', 'and the claim still goes on');
select is(pg_temp.status('dee'), 'RESERVED', 'and keeps its slot');
select is(
  (select f.outcome from claim c
   cross join lateral public.bridge_finish(array[c.msg_id], '{1}', '{committed}', '{null}', '{0}') f where c.user_id = 'dee'),
  'committed', 'until it is a ticket'
);

select * from finish();
rollback;
