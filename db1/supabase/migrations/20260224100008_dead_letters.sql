-- DEAD LETTERS: work that will not succeed by retrying waits here for an operator, who replays or discards it. Each
-- action is one transaction with its audit row, and answers per id.

create schema audit;

-- Every operator action, in the same transaction as the action. Insert only.
create table audit.audit_logs (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  reason text,
  details jsonb not null default '{}',
  constraint actor_is_named check (length(actor) between 1 and 200)
);

create index audit_logs_by_subject on audit.audit_logs (subject, at);

-- Promise: the dead letters, oldest first, filtered by what is not null; nothing is hidden from the next listing.
-- Page on with p_after = the last msg_id. Second call: the same. Locks: none.
-- Definer, as all that follow: service_role needs no rights to the queue.
create function public.dlq_list(
  p_pool_id text default null,
  p_reason text default null,
  p_older_than interval default null,
  p_msg_ids bigint[] default null,
  p_after bigint default 0,
  p_limit int default 100
)
returns table (
  msg_id bigint, pool_id text, claim_id text, resource_id text, user_id text, reason text, final_read_ct text,
  original_msg_id text, dead_since timestamptz, claim_state text, message jsonb
)
language sql
stable
security definer
set search_path = ''
as $$
  select d.msg_id, d.message ->> 'pool_id', d.message ->> 'claim_id', d.message ->> 'resource_id',
    d.message ->> 'user_id', coalesce(d.message ->> 'reason', 'max_retries'), d.message ->> 'final_read_ct',
    d.message ->> 'original_msg_id', d.enqueued_at, c.state::text, d.message
  from pgmq.q_intake_dlq d
  left join public.claims c on c.claim_id = intake.uuid_or_null(d.message ->> 'claim_id')
  where d.msg_id > p_after
    and (p_msg_ids is null or d.msg_id = any (p_msg_ids))
    and (p_pool_id is null or d.message ->> 'pool_id' = p_pool_id)
    and (p_reason is null or starts_with(coalesce(d.message ->> 'reason', 'max_retries'), p_reason))
    and (p_older_than is null or d.enqueued_at < now() - p_older_than)
  order by d.msg_id
  limit p_limit;
$$;

-- Promise: what the message was before it died: without what the dead letters added. One that was no object is itself
-- again. Second call: the same. Locks: none.
create function intake.original_of(p_letter jsonb)
returns jsonb
language sql
immutable
parallel safe
set search_path = ''
as $$
  select case
    when p_letter ? 'payload' and not p_letter ? 'pool_id' then p_letter -> 'payload'
    else p_letter - array['original_msg_id', 'final_read_ct', 'routed_to_dlq_at', 'reason', 'last_error', 'forgiven']
  end;
$$;

-- Promise: the dead letter goes round again, and what happened is the answer: replayed (the same claim), claimed (its
-- slot was gone meanwhile: a new claim for the same user), or sold_out, closed, limit, busy … (no slot: the letter
-- stays). Second call: not_found, the letter is gone. Locks: letter (held by the caller) → claim → those of a claim.
create function intake.replay_one(
  p_msg_id bigint,
  p_letter jsonb
)
returns text
language plpgsql
set search_path = ''
as $$
declare
  v_original jsonb := intake.original_of(p_letter);
  v_claim public.claims;
  v_answer intake.claim_answer;
  v_new_id bigint;
begin
  if intake.uuid_or_null(v_original ->> 'claim_id') is null and not (v_original ->> 'resource_id' is not null and exists (
    select from public.claims c where c.slot_id = intake.uuid_or_null(v_original ->> 'resource_id') and c.freed_at is null
  )) then
    -- Put there by hand, and nobody else has its slot: it goes round as it is.
    perform pgmq.send('intake_queue', v_original || jsonb_build_object('replayed_from', p_msg_id));
    return 'replayed';
  end if;
  select c.* into v_claim from public.claims c
  where c.claim_id = intake.uuid_or_null(v_original ->> 'claim_id') for update;
  if v_claim.state = 'dead_letter' then
    v_new_id := pgmq.send('intake_queue', jsonb_set(v_original, '{state}', '"queued"')
      || jsonb_build_object('replayed_from', p_msg_id));
    update public.claims c set state = 'queued', msg_id = v_new_id where c.claim_id = v_claim.claim_id;
    return 'replayed';
  elsif v_claim.freed_at is null and v_claim.claim_id is not null then
    return 'claim_is_' || v_claim.state;
  end if;
  v_answer := intake.claim_one(v_original ->> 'pool_id', v_original ->> 'user_id', null, true, false);
  return v_answer.outcome;
end
$$;
