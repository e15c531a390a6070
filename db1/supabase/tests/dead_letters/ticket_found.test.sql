-- A claim that waits in the dead letters, and of which the ledger has the ticket, leaves them with its letter.
begin;
select plan(6);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) values ('c');
select public.claim_resource_and_queue('c', 'ann');
select count(*) from tests.take(100, 30);
select is(
  (select f.outcome from public.claims c
   cross join lateral public.bridge_finish(array[c.msg_id], '{1}', '{dead_letter}', '{max_retries}', '{0}') f where c.pool_id = 'c'),
  'dead_letter', 'a claim is a dead letter'
);
create temp table letter as select tests.letter_of('ann') as id;
select is(
  (select public.reconcile_fix(c.slot_id, 'ticket_without_claim', 'olga', jsonb_build_object('claim_id', c.claim_id, 'user_id', 'ann'))
   from public.claims c where c.pool_id = 'c'),
  'fixed', 'the ledger has its ticket'
);
select is((tests.claim_of('c', 'ann')).state::text, 'committed', 'the claim is committed');
select is_empty('select from pgmq.q_intake_dlq', 'its letter is gone');
select is((select count(*)::int from pgmq.a_intake_dlq a join letter on a.msg_id = id), 1, 'and kept in the archive');
select is(
  (select outcome from letter cross join lateral public.replay_dead_letters(array[id], 'olga', 'why')), 'not_found', 'so none can be replayed'
);

select * from finish();
rollback;
