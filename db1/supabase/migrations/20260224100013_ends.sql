-- ENDS: claims that will end although a worker has taken them. That worker may be slow and still write the ticket, so giving
-- the slot back goes the other way round than selling it: first the ledger gets a tombstone, after which it refuses the
-- ticket (void_tickets in DB2), then the claim ends here. The bridge worker carries it: take_ends, the ledger, finish_ends.
-- Until then the claim holds its slot; while the ledger is away it waits. Where the ledger has the ticket already, the claim
-- is committed instead.

-- Promise: those of the claims whose pools commit by a hook or a function of their own, where no tombstone can refuse a late
-- commit, are not looked at before a call that a worker may have under way is over: of a dead letter that an operator discards its deadline
-- after it became one; of a claim whose pool began to commit so since it was to end the worker's lease, then the deadline, and its
-- message is hidden from all workers first. A worker that stalls for longer can still commit.
-- Second call: waits for nothing more. Locks: messages, without waiting: a locked one is looked at again in a second; claims
-- (held by the caller).
create function intake.wait_out(p_claim_ids uuid[]) returns void
language plpgsql set search_path = '' as $$
declare
  -- Longer than the longest call of a worker: 10 s for a hook, 32 s for a statement.
  c_deadline constant interval := '35 seconds';
begin
  with elsewhere as materialized (
    select c.claim_id, c.msg_id, c.state
    from public.claims c
    join public.engine_config g on g.pool_id = c.pool_id
    cross join intake.default_rules d
    where c.claim_id = any (p_claim_ids) and (g.commit_webhook_url is not null or g.commit_rpc_name <> d.commit_rpc_name)
  ),
  visible as materialized (
    select q.msg_id, q.vt, e.claim_id
    from elsewhere e
    join pgmq.q_intake_queue q on q.msg_id = e.msg_id
    where e.state <> 'dead_letter' and q.vt < 'infinity'
    for update of q skip locked
  ),
  hidden as (
    update pgmq.q_intake_queue q set vt = 'infinity' from visible v where q.msg_id = v.msg_id
    returning v.claim_id, greatest(v.vt, clock_timestamp()) + c_deadline as due
  ),
  waits as (
    select h.claim_id, h.due from hidden h
    union all
    select e.claim_id, clock_timestamp() + interval '1 second'
    from elsewhere e
    join pgmq.q_intake_queue q on q.msg_id = e.msg_id
    where e.state <> 'dead_letter' and q.vt < 'infinity' and e.claim_id not in (select v.claim_id from visible v)
    union all
    select e.claim_id, l.enqueued_at + c_deadline
    from elsewhere e
    join pgmq.q_intake_dlq l on l.msg_id = e.msg_id
    where e.state = 'dead_letter'
  )
  update public.claims c
  set end_due = w.due
  from waits w
  where c.claim_id = w.claim_id and c.claim_id = any (p_claim_ids) and w.due > clock_timestamp();
end
$$;

-- Promise: up to p_limit claims that are to end now, as many of each pool (intake.lock_due), for p_lease_sec this caller's
-- alone. in_ledger: finish_ends needs what void_tickets answers; else the outcome is voided. Pools whose cache is lost wait for
-- it. Second call: other claims, until the lease has run out; a claim that two callers have changes nothing but their work.
-- Locks: the claims (others' are skipped) → those of wait_out. Definer, as finish_ends: service_role needs no rights to
-- queue and tables.
create function public.take_ends(p_limit int, p_lease_sec int)
returns table (
  claim_id uuid, resource_id uuid, pool_id text, user_id text, verified boolean, cause text, in_ledger boolean
)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_due uuid[] := intake.lock_due('end', p_limit);
begin
  if v_due = '{}' then
    return;
  end if;
  perform intake.wait_out(v_due);
  return query
  update public.claims c
  set end_due = clock_timestamp() + make_interval(secs => p_lease_sec)
  where c.claim_id = any (v_due) and c.end_due <= clock_timestamp()
  returning c.claim_id, c.slot_id, c.pool_id, c.user_id::text, c.verified, c.end_as::text,
    not exists (select from public.engine_config g where g.pool_id = c.pool_id and g.commit_webhook_url is not null);
end
$$;

-- Promise: each of the claims that is still going to end has ended as planned (voided: slot back on sale) or is committed
-- (ticket: the ledger has it, slot CONSUMED); its message or dead letter is gone, even if a worker holds it. Returns how many.
-- A claim whose message is moving to the dead letters at this moment, or back, is left for the next look, and so is one whose
-- slot or pool another session has locked (intake.locked_slots). Raises SL015 not read committed.
-- Second call: 0. Locks: messages → dead letters, each in the order of their ids → claims → pools → slots, as bridge_finish.
create function public.finish_ends(p_claim_ids uuid[], p_outcomes text[]) returns int
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_msg_ids bigint[];
  v_letter_ids bigint[];
  v_voided uuid[];
  v_tickets uuid[];
  v_locked uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  select array_agg(c.msg_id) filter (where c.state <> 'dead_letter'), array_agg(c.msg_id) filter (where c.state = 'dead_letter')
  into v_msg_ids, v_letter_ids
  from public.claims c where c.claim_id = any (p_claim_ids) and c.end_as is not null;
  perform from pgmq.q_intake_queue q where q.msg_id = any (v_msg_ids) order by q.msg_id for update;
  perform from pgmq.q_intake_dlq d where d.msg_id = any (v_letter_ids) order by d.msg_id for update;
  -- The claims first, in the order of their ids, as in every function that goes on to lock their slots.
  perform from public.claims c where c.claim_id = any (p_claim_ids) and c.end_as is not null order by c.claim_id for update;
  v_locked := intake.locked_slots(p_claim_ids);
  with ending as materialized (
    select c.claim_id, c.state, c.msg_id from public.claims c
    where c.claim_id = any (p_claim_ids) and c.end_as is not null and c.slot_id <> all (v_locked) and (
      c.msg_id is null or c.msg_id = any (case when c.state = 'dead_letter' then v_letter_ids else v_msg_ids end)
    )
    order by c.claim_id
    for update
  )
  select coalesce(array_agg(e.claim_id) filter (where t.outcome = 'voided'), '{}'),
    coalesce(array_agg(e.claim_id) filter (where t.outcome = 'ticket'), '{}'),
    array_agg(e.msg_id) filter (where e.state <> 'dead_letter'), array_agg(e.msg_id) filter (where e.state = 'dead_letter')
  into v_voided, v_tickets, v_msg_ids, v_letter_ids
  from ending e
  join unnest(p_claim_ids, p_outcomes) t (claim_id, outcome) on t.claim_id = e.claim_id and t.outcome in ('voided', 'ticket');
  delete from pgmq.q_intake_queue q where q.msg_id = any (v_msg_ids);
  perform pgmq.archive('intake_dlq', v_letter_ids);
  perform intake.share_pools(array(select distinct c.pool_id from public.claims c where c.claim_id = any (v_voided || v_tickets)));
  update public.claims c
  set state = 'committed', msg_id = null, hold_until = null, end_as = null, end_reason = null
  where c.claim_id = any (v_tickets);
  perform intake.consume_slots(array(select c.slot_id from public.claims c where c.claim_id = any (v_tickets)));
  perform intake.free_claims(v_voided, null, null);
  return cardinality(v_voided) + cardinality(v_tickets);
end
$$;
