-- RECONCILE: what the intake believes about each slot, a page at a time, to be compared with the ledger's tickets; and the
-- repairs an operator may have made. Nothing here touches a ticket: what the ledger has is what was sold.

-- Promise: how many slots there are to compare. Second call: the same. Locks: none.
-- Definer, as all that follow: service_role needs no rights to queue and tables.
create function public.reconcile_total() returns bigint
language sql stable security definer set search_path = '' as $$
  select count(*) from public.slot_manifest;
$$;

-- Promise: p_limit slots after p_after in the order of their ids, or those of p_slot_ids: what the cache says, the live
-- claim, whether that has its message or dead letter, or needs none yet (it is ending, or waits for its payment), whether it
-- should have a ticket once it is committed, and whether a message that was put there by hand holds a slot without a claim.
-- A pool of the page that has lost its cache is rebuilt first. Second call: the same. Locks: those of intake.rebuild_pools.
create function public.reconcile_claims(
  p_after uuid default null,
  p_limit int default 1000,
  p_slot_ids uuid[] default null
)
returns table (
  slot_id uuid, pool_id text, slot_status text, claim_id uuid, user_id text, claim_state text, has_message boolean,
  expects_ticket boolean, held_by_hand boolean
)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_slot_ids uuid[] := array(
    select m.slot_id from public.slot_manifest m
    where (p_after is null or m.slot_id > p_after) and (p_slot_ids is null or m.slot_id = any (p_slot_ids))
    order by m.slot_id
    limit p_limit
  );
begin
  perform intake.rebuild_pools(array(select distinct m.pool_id from public.slot_manifest m where m.slot_id = any (v_slot_ids)));
  return query
  with page as materialized (
    select m.slot_id, m.pool_id from public.slot_manifest m where m.slot_id = any (v_slot_ids)
  )
  select p.slot_id, p.pool_id, s.status::text, c.claim_id, c.user_id::text, c.state::text,
    c.end_as is not null or c.state = 'held'
      or exists (select from pgmq.q_intake_queue q where q.msg_id = c.msg_id and c.state in ('queued', 'validated'))
      or exists (select from pgmq.q_intake_dlq d where d.msg_id = c.msg_id and c.state = 'dead_letter'),
    c.committed_by is null,
    c.claim_id is null and s.status = 'RESERVED'
      and p.slot_id in (select h.slot_id from intake.held_by_hand h where h.slot_id is not null)
  from page p
  left join public.inventory_slots s on s.id = p.slot_id
  left join public.claims c on c.slot_id = p.slot_id and c.freed_at is null
  order by p.slot_id;
end
$$;

-- Promise: the messages on the queue whose claim has ended, p_limit after p_after. The bridge drops them when it meets
-- them; one that stays means that no bridge runs. Second call: the same. Locks: none.
create function public.reconcile_messages(p_after bigint default 0, p_limit int default 1000)
returns table (msg_id bigint, slot_id uuid, pool_id text, claim_id uuid, claim_state text)
language sql stable security definer set search_path = '' as $$
  select q.msg_id, c.slot_id, c.pool_id, c.claim_id, c.state::text
  from pgmq.q_intake_queue q
  join public.claims c on c.claim_id = intake.uuid_or_null(q.message ->> 'claim_id')
  where q.msg_id > p_after and (c.freed_at is not null or c.state = 'committed')
  order by q.msg_id
  limit p_limit;
$$;

-- Promise: the slot's cache says what its live claim says: CONSUMED for a ticket, RESERVED for a claim on its way. A slot
-- without a claim goes back on sale if it is RESERVED and no message holds it. True when something changed.
-- Second call: false. Locks: those of return_slots.
create function intake.fix_slot_status(p_slot_id uuid) returns boolean
language plpgsql set search_path = '' as $$
begin
  update public.inventory_slots s
  set status = w.status, locked_by = c.user_id, locked_at = c.claimed_at
  from public.claims c
  cross join lateral (
    select case when c.state = 'committed' then 'CONSUMED' else 'RESERVED' end::public.slot_status as status
  ) w
  where s.id = p_slot_id and c.slot_id = p_slot_id and c.freed_at is null and s.status <> w.status;
  return found or intake.return_slots(intake.reserved_by_hand(array[p_slot_id])) > 0;
end
$$;

-- Promise: the claim of the ledger's ticket is committed and its slot CONSUMED; a claim that the intake does not know is
-- made, because the ledger sold it, and with it the order that a payment bought (intake.restore_order). Held claims that it
-- replaces end (intake.end_replaced). False, and nothing changes, when another live claim or another session has the slot, the claim
-- is another slot's or user's, it has ended (a claim never lives again), or it waits for its payment (the payment has to be settled
-- first): an operator decides those. Null when the ticket says too little. The letter of a claim that waited in the dead letters is
-- archived: nothing is left to replay. Second call: false.
-- Locks: those of intake.end_replaced, of which the order of the purchase comes first → the claim, then the slot and the letter without
-- waiting: a session that claims holds the slot and waits for claims, one that replays holds the letter and waits for its claim.
create function intake.fix_from_ticket(p_slot_id uuid, p_ticket jsonb) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_claim_id uuid := intake.uuid_or_null(p_ticket ->> 'claim_id');
  v_user_id text := p_ticket ->> 'user_id';
  v_pool_id text;
  v_claim public.claims;
begin
  if v_claim_id is null or v_user_id is null then
    return null;
  end if;
  select m.pool_id into v_pool_id from public.slot_manifest m where m.slot_id = p_slot_id;
  perform intake.end_replaced(p_ticket -> 'purchase');
  select c.* into v_claim from public.claims c where c.claim_id = v_claim_id for update;
  if v_pool_id is null or v_claim.slot_id <> p_slot_id or v_claim.user_id <> v_user_id or v_claim.freed_at is not null
     or v_claim.state = 'held' or exists (
       select from public.claims c where c.slot_id = p_slot_id and c.freed_at is null and c.claim_id <> v_claim_id
     ) then
    raise exception using errcode = 'SL099';
  end if;
  perform from public.inventory_slots s where s.id = p_slot_id for update skip locked;
  if not found and exists (select from public.inventory_slots s where s.id = p_slot_id) then
    raise exception using errcode = 'SL099';
  end if;
  if v_claim.state = 'dead_letter' then
    perform from pgmq.q_intake_dlq d where d.msg_id = v_claim.msg_id for update skip locked;
    if not found and exists (select from pgmq.q_intake_dlq d where d.msg_id = v_claim.msg_id) then
      raise exception using errcode = 'SL099';
    end if;
    perform pgmq.archive('intake_dlq', v_claim.msg_id);
  end if;
  insert into public.claims as c (claim_id, pool_id, slot_id, user_id, state, verified)
  values (v_claim_id, v_pool_id, p_slot_id, v_user_id, 'committed', intake.is_verified(p_ticket))
  on conflict (claim_id) do update
  set state = 'committed', end_as = null, end_reason = null, msg_id = null, hold_until = null
  where c.state <> 'committed' and c.freed_at is null;
  if not found then
    raise exception using errcode = 'SL099';
  end if;
  perform intake.restore_order(v_claim_id, p_ticket -> 'purchase');
  update public.inventory_slots s
  set status = 'CONSUMED', locked_by = v_user_id, locked_at = coalesce(s.locked_at, now())
  where s.id = p_slot_id;
  return true;
exception
  when sqlstate 'SL099' then
    return false;
end
$$;

-- Promise: a claim that waits in the dead letters for a slot of which the ledger has another claim's ticket ends as
-- discarded, and the ticket's claim has the slot, which is never on sale between. Its letter can be discarded afterwards,
-- or replayed for another slot. A held claim that the ticket's claim replaces gives way as well (intake.end_replaced). False, and
-- nothing changes, where the live claim is another or was paid for (void it), or intake.fix_from_ticket has a reason.
-- Second call: false. Locks: the claim in the dead letters → those of intake.fix_from_ticket.
create function intake.fix_owner(p_slot_id uuid, p_ticket jsonb)
returns boolean language plpgsql set search_path = '' as $$
begin
  update public.claims c
  set state = 'discarded', freed_at = now(), end_reason = 'the ledger has a ticket of another claim', msg_id = null,
    end_as = null
  where c.slot_id = p_slot_id and c.freed_at is null and c.state = 'dead_letter' and c.paid is null
    and c.claim_id <> intake.uuid_or_null(p_ticket ->> 'claim_id');
  if not found and not intake.end_replaced(p_ticket -> 'purchase') then
    return false;
  elsif intake.fix_from_ticket(p_slot_id, p_ticket) is not true then
    raise exception using errcode = 'SL099';
  end if;
  return true;
exception
  when sqlstate 'SL099' then
    return false;
end
$$;

-- Promise: the slot's live claim, if it is in one of these states, has a message on the queue again, so that the bridge
-- carries it: one that lost its message, or one that is committed here and has no ticket there, unless it was committed
-- elsewhere or is going to end. A message that it has already is found again, not doubled. False when no claim fits.
-- Second call: false.
-- Locks: the claim, then the slot.
create function intake.fix_requeue(p_slot_id uuid, p_states public.claim_state[]) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_claim public.claims;
  v_state public.claim_state;
  v_msg_id bigint;
begin
  select c.* into v_claim from public.claims c
  where c.slot_id = p_slot_id and c.freed_at is null and c.state = any (p_states) and c.end_as is null
    and c.committed_by is null
  for update;
  if not found
     or exists (select from pgmq.q_intake_queue q where q.msg_id = v_claim.msg_id and v_claim.state <> 'dead_letter')
     or exists (select from pgmq.q_intake_dlq d where d.msg_id = v_claim.msg_id and v_claim.state = 'dead_letter') then
    return false;
  end if;
  -- A claim that was validated is not validated again, least of all a ticket. Of a lost dead letter that is unknown.
  v_state := case when v_claim.state in ('validated', 'committed') then 'validated' else 'queued' end;
  select q.msg_id into v_msg_id from pgmq.q_intake_queue q
  where intake.uuid_or_null(q.message ->> 'claim_id') = v_claim.claim_id order by q.msg_id limit 1;
  if v_msg_id is null then
    v_msg_id := public.intake_queue_send(jsonb_build_object(
      'claim_id', v_claim.claim_id, 'pool_id', v_claim.pool_id, 'resource_id', v_claim.slot_id,
      'user_id', v_claim.user_id, 'verified', v_claim.verified, 'state', v_state, 'replayed_from', v_claim.msg_id
    ) || case when v_claim.order_id is null then '{}' else jsonb_build_object('order_id', v_claim.order_id) end);
  end if;
  update public.claims c set state = v_state, hold_until = null, msg_id = v_msg_id where c.claim_id = v_claim.claim_id;
  update public.inventory_slots s set status = 'RESERVED' where s.id = p_slot_id and s.status = 'CONSUMED';
  return true;
end
$$;

-- Promise: the slot's live claim, for which the ledger has a tombstone (p_tombstone), is voided, as the interrupted void would
-- have done. False if the slot has no such claim, or it is ending by itself. Second call: false. Locks: those of finish_void.
create function intake.fix_void(p_slot_id uuid, p_tombstone jsonb) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_claim_id uuid := (
    select c.claim_id from public.claims c
    where c.slot_id = p_slot_id and c.claim_id = intake.uuid_or_null(p_tombstone ->> 'claim_id')
      and c.freed_at is null and c.end_as is null and c.state <> 'held'
  );
begin
  return v_claim_id is not null and public.finish_void(array[v_claim_id], 'voided by the ledger') = 1;
end
$$;

-- Promise: messages of the slot's ended claims that no worker holds leave the queue for its archive. True when there was one.
-- Second call: false. Locks: the messages; those that a worker holds are skipped.
create function intake.fix_ended_messages(p_slot_id uuid) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_msg_ids bigint[] := array(
    select q.msg_id
    from pgmq.q_intake_queue q
    join public.claims c on c.claim_id = intake.uuid_or_null(q.message ->> 'claim_id')
    where c.slot_id = p_slot_id and (c.freed_at is not null or c.state = 'committed') and q.vt <= clock_timestamp()
    for update of q skip locked
  );
begin
  perform pgmq.archive('intake_queue', v_msg_ids);
  return v_msg_ids <> '{}';
end
$$;

-- Promise: repairs one difference of one slot, judged anew under locks, with one audit row, which names the slot's claim and
-- the one that ended for it: fixed; or why not: unchanged (it is gone, or nothing that may be done would mend it). p_ticket
-- is the ledger's {claim_id, user_id, verified, purchase} where the kind needs it (purchase: public.ticket_purchase there), or its
-- tombstone. Raises SL001 for a kind that has no repair.
-- Second call: unchanged, and no audit row. Locks: those of the repair.
create function public.reconcile_fix(p_slot_id uuid, p_kind text, p_actor text, p_ticket jsonb default null)
returns text
language plpgsql security definer set search_path = '' as $$
declare
  v_before uuid := (select c.claim_id from public.claims c where c.slot_id = p_slot_id and c.freed_at is null);
  v_after uuid;
  v_fixed boolean;
begin
  v_fixed := case p_kind
    when 'ticket_without_claim' then intake.fix_from_ticket(p_slot_id, p_ticket)
    when 'ticket_on_sale' then intake.fix_from_ticket(p_slot_id, p_ticket)
    when 'ticket_of_another_claim' then intake.fix_owner(p_slot_id, p_ticket)
    when 'claim_without_ticket' then intake.fix_requeue(p_slot_id, '{committed}')
    when 'claim_without_message' then intake.fix_requeue(p_slot_id, '{queued,validated,dead_letter}')
    when 'message_of_ended_claim' then intake.fix_ended_messages(p_slot_id)
    when 'void_unfinished' then intake.fix_void(p_slot_id, p_ticket)
    when 'slot_status' then intake.fix_slot_status(p_slot_id)
  end;
  if v_fixed is null then
    raise exception '% cannot be repaired', p_kind using errcode = 'SL001';
  elsif not v_fixed then
    return 'unchanged';
  end if;
  select c.claim_id into v_after from public.claims c where c.slot_id = p_slot_id and c.freed_at is null;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'reconcile_fix', 'slot ' || p_slot_id, p_kind, jsonb_build_object(
    'ticket', p_ticket - 'purchase', 'claim_id', v_after, 'ended_claim_id', nullif(v_before, v_after)
  ));
  return 'fixed';
end
$$;
