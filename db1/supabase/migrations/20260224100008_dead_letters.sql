-- DEAD LETTERS: work that will not succeed by retrying waits here for an operator, who replays or discards it. Each
-- action is one transaction with its audit row, and answers per id.

create schema audit;

-- Every operator action, in the same transaction as the action. Insert only. actor is for whom the caller says it acts;
-- written_by is what the database itself saw (audit.writer). changed: what the transaction changed of the rules
-- (audit.tell_changes).
create table audit.audit_logs (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null, action text not null, subject text not null, reason text,
  details jsonb not null default '{}',
  written_by text not null default 'unknown',
  changed jsonb,
  constraint actor_is_named check (length(actor) between 1 and 200)
);

create index audit_logs_by_subject on audit.audit_logs (subject, at);
create index audit_logs_by_action on audit.audit_logs (action, at);

-- One key per user, for the pseudonym by which the log names them. Without the key no one can tell whose pseudonym it was.
create table audit.user_keys (
  user_id text primary key,
  key bytea not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
);

-- Promise: how the log names this user. Second call: the same, until the key is destroyed. Locks: the user's key, where it is
-- new.
create function audit.pseudonym(p_user_id text) returns text
language plpgsql set search_path = '' as $$
begin
  insert into audit.user_keys (user_id) values (p_user_id) on conflict do nothing;
  return (
    select 'user:' || left(encode(sha256(k.key || convert_to(p_user_id, 'UTF8')), 'hex'), 32)
    from audit.user_keys k where k.user_id = p_user_id
  );
end
$$;

-- Promise: whether this is the name that stands for an erased user (20260224100019_personal_data.sql). Second call: the same. Locks: none.
create function audit.is_replacement(p_user_id text) returns boolean
language sql immutable parallel safe set search_path = '' as $$
  select p_user_id ~ '^erased:[0-9a-f]{32}$';
$$;

-- Promise: whether the id tells the user from other words, so that it may be replaced wherever it stands: four characters or
-- more, and not a number of up to six digits. "42" is also an amount and a second; such an id is replaced where a field is
-- called user_id and nowhere else. Second call: the same. Locks: none.
create function audit.is_telling(p_user_id text) returns boolean
language sql immutable parallel safe set search_path = '' as $$
  select length(p_user_id) >= 4 and p_user_id !~ '^\d{1,6}$';
$$;

-- Promise: the text with p_new in place of the id, where that stands by itself and not in a longer word; the same text for an
-- id that does not tell (audit.is_telling). Second call: the same. Locks: none.
create function audit.text_without(p_text text, p_user_id text, p_new text) returns text
language plpgsql immutable parallel safe set search_path = '' as $$
begin
  if coalesce(strpos(p_text, p_user_id), 0) = 0 or not audit.is_telling(p_user_id) then
    return p_text;
  end if;
  return regexp_replace(p_text, case when p_user_id ~ '^\w' then '(?<!\w)' else '' end
    || regexp_replace(p_user_id, '[].*+?(){}|^$\\[]', '\\\&', 'g')
    || case when p_user_id ~ '\w$' then '(?!\w)' else '' end, p_new, 'g');
end
$$;

-- Promise: the JSON with p_new in place of the id: as the value of a user_id, text or number, and by audit.text_without in every
-- other text and in names of fields. Second call: the same. Locks: none.
create function audit.replace_user(p_json jsonb, p_user_id text, p_new text) returns jsonb
language plpgsql immutable parallel safe set search_path = '' as $$
begin
  return case jsonb_typeof(p_json)
    when 'object' then (
      select coalesce(jsonb_object_agg(audit.text_without(e.key, p_user_id, p_new), case
        when e.key = 'user_id' and e.value #>> '{}' = p_user_id then to_jsonb(p_new)
        else audit.replace_user(e.value, p_user_id, p_new)
      end), '{}')
      from jsonb_each(p_json) e
    )
    when 'array' then (
      select coalesce(jsonb_agg(audit.replace_user(e.value, p_user_id, p_new) order by e.ordinality), '[]')
      from jsonb_array_elements(p_json) with ordinality e
    )
    when 'string' then to_jsonb(audit.text_without(p_json #>> '{}', p_user_id, p_new))
    else p_json
  end;
end
$$;

-- Promise: as audit.replace_user, in a fraction of its time where the id is the whole of a text, and without reading the fields
-- where it does not stand at all. Second call: the same. Locks: none.
create function audit.json_without(p_json jsonb, p_user_id text, p_new text) returns jsonb
language plpgsql immutable parallel safe set search_path = '' as $$
declare
  -- In quotes, as JSON writes it.
  v_quoted text := to_json(p_user_id)::text;
  v_text text := p_json::text;
begin
  if coalesce(strpos(v_text, substr(v_quoted, 2, length(v_quoted) - 2)), 0) = 0 then
    return p_json;
  end if;
  if audit.is_telling(p_user_id) then
    v_text := replace(v_text, v_quoted, to_json(p_new)::text);
    if strpos(v_text, substr(v_quoted, 2, length(v_quoted) - 2)) = 0 then
      return v_text::jsonb;
    end if;
  end if;
  return audit.replace_user(v_text::jsonb, p_user_id, p_new);
end
$$;

-- Trigger. Promise: no row of the log holds the id of a user in its details. A user whom the details name is not named in the
-- subject, the reason or another text of the row either. Second call: the same. Locks: those of audit.pseudonym. Definer, as
-- the next: a role that writes a row need not have rights to the keys.
create function audit.hide_users() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_user_id text;
begin
  if new.details::text like '%"user_id"%' then
    for v_user_id in
      select distinct u #>> '{}' from jsonb_path_query(new.details, '$.**.user_id') u
      where jsonb_typeof(u) in ('string', 'number') and u #>> '{}' !~ '^user:[0-9a-f]{32}$'
    loop
      new.details := audit.json_without(new.details, v_user_id, audit.pseudonym(v_user_id));
      new.subject := audit.text_without(new.subject, v_user_id, audit.pseudonym(v_user_id));
      new.reason := audit.text_without(new.reason, v_user_id, audit.pseudonym(v_user_id));
    end loop;
  end if;
  return new;
end
$$;

create trigger log_hides_users before insert on audit.audit_logs for each row execute function audit.hide_users();

-- Promise: who is connected, as the database knows it: the user of the session, and the role that the session took. A caller of a
-- function chooses neither. Second call: the same. Locks: none.
create function audit.writer() returns text
language sql stable set search_path = '' as $$
  select session_user || coalesce(' as ' || nullif(current_setting('role', true), 'none'), '');
$$;

-- Trigger. Promise: written_by of a row is audit.writer(), whatever was given. Rows that the owner imports (`sluice import`) keep
-- theirs. Second call: the same. Locks: none. Definer: as hide_users.
create function audit.sign_row() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if coalesce(current_setting('sluice.audit_exception', true), '') <> 'import' or not pg_has_role(session_user, (
    select c.relowner from pg_catalog.pg_class c where c.oid = tg_relid
  ), 'usage') then
    new.written_by := audit.writer();
  end if;
  return new;
end
$$;

create trigger log_names_its_writer before insert on audit.audit_logs for each row execute function audit.sign_row();

-- Trigger. Promise: no statement changes or removes rows of the log without an exception, which has a name of its own in the setting
-- sluice.audit_exception: `sluice import`, into a database that is new, and an update by audit.erase_rows, of which
-- audit.refuse_sealed keeps all that a seal covers. The owner can set it too, or switch triggers off: the chain finds what was
-- changed then (audit.chain_faults). Second call: the same. Locks: none.
create function audit.refuse_change() returns trigger
language plpgsql set search_path = '' as $$
declare
  v_exception text := coalesce(current_setting('sluice.audit_exception', true), '');
begin
  if v_exception = 'import' or v_exception = 'erase' and tg_op = 'UPDATE' and tg_table_name = 'audit_logs' then
    return null;
  end if;
  raise exception '% is insert only', tg_table_name
    using errcode = 'restrict_violation', hint = 'correct a wrong row with another row';
end
$$;

create trigger log_is_insert_only
  before update or delete or truncate on audit.audit_logs
  for each statement execute function audit.refuse_change();

-- For the timeline of a claim (public.claim_timeline). A repair can end one claim for another: its row names both.
create index audit_logs_by_claim on audit.audit_logs ((details ->> 'claim_id'))
  where details ->> 'claim_id' is not null;
create index audit_logs_by_ended_claim on audit.audit_logs ((details ->> 'ended_claim_id'))
  where details ->> 'ended_claim_id' is not null;

-- Promise: p_limit rows of the audit log of those that match what is not null, before p_before and behind the first p_offset, newest
-- first. By subject, action or id it asks an index. Second call: the same, and what is new.
-- Locks: none. Definer: service_role has no rights to the log.
create function public.audit_page(
  p_before bigint default null,
  p_limit int default 100,
  p_actor text default null,
  p_action text default null,
  p_subject text default null,
  p_id bigint default null,
  p_offset int default 0
)
returns setof audit.audit_logs
language plpgsql stable security definer set search_path = ''
-- Before Postgres 18 a function in SQL is planned without its arguments, and each page would read from the start.
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select a.* from audit.audit_logs a
  where (p_before is null or a.id < p_before) and (p_id is null or a.id = p_id) and (p_actor is null or a.actor = p_actor)
    and (p_action is null or a.action = p_action) and (p_subject is null or a.subject = p_subject)
  order by a.id desc limit p_limit offset p_offset;
end
$$;

-- Promise: the dead letters, oldest first, filtered by what is not null, behind the first p_offset; nothing is hidden from the next
-- listing. Page on with p_after = the last msg_id. Second call: the same. Locks: none.
-- Definer, as all that follow: service_role needs no rights to the queue.
create function public.list_dead_letters(
  p_pool_id text default null,
  p_reason text default null,
  p_older_than interval default null,
  p_msg_ids bigint[] default null,
  p_after bigint default 0,
  p_limit int default 100,
  p_offset int default 0
)
returns table (
  msg_id bigint, pool_id text, claim_id text, resource_id text, user_id text, reason text, final_read_ct text,
  original_msg_id text, dead_since timestamptz, claim_state text, message jsonb, ending boolean
)
language sql stable security definer set search_path = '' as $$
  select d.msg_id, d.message ->> 'pool_id', d.message ->> 'claim_id', d.message ->> 'resource_id',
    d.message ->> 'user_id', coalesce(d.message ->> 'reason', 'max_retries'), d.message ->> 'final_read_ct',
    d.message ->> 'original_msg_id', d.enqueued_at, c.state::text, d.message,
    coalesce(c.end_as is not null and c.msg_id = d.msg_id, false)
  from pgmq.q_intake_dlq d
  left join public.claims c on c.claim_id = intake.uuid_or_null(d.message ->> 'claim_id')
  where d.msg_id > coalesce(p_after, 0)
    and (p_msg_ids is null or d.msg_id = any (p_msg_ids))
    and (p_pool_id is null or d.message ->> 'pool_id' = p_pool_id)
    and (p_reason is null or starts_with(coalesce(d.message ->> 'reason', 'max_retries'), p_reason))
    and (p_older_than is null or d.enqueued_at < now() - p_older_than)
  order by d.msg_id
  limit p_limit offset p_offset;
$$;

-- Promise: each of the ids once, in their order, with its dead letter where there is one. Second call: the same.
-- Locks: the letters, in the order of their ids.
create function intake.lock_letters(p_msg_ids bigint[]) returns table (msg_id bigint, is_there boolean, letter jsonb)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
begin
  perform from pgmq.q_intake_dlq d where d.msg_id = any (p_msg_ids) order by d.msg_id for update;
  return query
  select a.msg_id, d.msg_id is not null, d.message
  from (select distinct i as msg_id from unnest(p_msg_ids) i where i is not null) a
  left join pgmq.q_intake_dlq d on d.msg_id = a.msg_id
  order by a.msg_id;
end
$$;

-- Promise: whether the ledger has said that the letter's slot has another's ticket, and no claim here holds the slot for
-- that ticket: freed, it would be sold again and again. Second call: the same. Locks: none.
create function intake.is_sold_elsewhere(p_letter jsonb) returns boolean
language sql stable set search_path = '' as $$
  select coalesce(starts_with(p_letter ->> 'reason', 'ticket_conflict') or starts_with(p_letter ->> 'reason', 'SL020'), false)
    and exists (select from public.slot_manifest m where m.slot_id = intake.uuid_or_null(p_letter ->> 'resource_id'))
    and not exists (
      select from public.claims c
      where c.slot_id = intake.uuid_or_null(p_letter ->> 'resource_id') and c.freed_at is null
        and (c.state = 'committed' or c.claim_id is distinct from intake.uuid_or_null(p_letter ->> 'claim_id'))
    );
$$;

-- Promise: one row in the audit log about a dead letter. Second call: a second row. Locks: none.
create function intake.write_audit(
  p_actor text, p_action text, p_msg_id bigint, p_reason text, p_letter jsonb, p_outcome text
)
returns void
language sql set search_path = '' as $$
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, p_action, 'dead letter ' || p_msg_id, p_reason, jsonb_build_object(
    'outcome', p_outcome, 'claim_id', p_letter -> 'claim_id', 'pool_id', p_letter -> 'pool_id', 'letter', p_letter
  ));
$$;

-- Promise: the message as it was before it became a dead letter, without the fields that were added then. A message that was
-- not an object is itself again. Second call: the same. Locks: none.
create function intake.original_of(p_letter jsonb) returns jsonb
language sql immutable parallel safe set search_path = '' as $$
  select case
    when jsonb_typeof(p_letter) <> 'object' then p_letter
    when p_letter ? 'payload' and not p_letter ? 'pool_id' then p_letter -> 'payload'
    else p_letter - array[
      'original_msg_id', 'final_read_ct', 'routed_to_dlq_at', 'reason', 'last_error', 'seen', 'tried', 'takeovers', 'untried'
    ]
  end;
$$;

-- Promise: the dead letter goes round again, and what happened is the answer: replayed (the same claim goes back on
-- the queue), claimed (its slot was gone meanwhile: a new claim for the same user), or why the letter stays:
-- sold_out, closed, limit, auth_required (the pool has begun to ask for a sign-in, and this user has none), unknown_pool,
-- busy, malformed, needs_payment (the pool is paid for, and no slot is given without), claim_is_… (its state, or ending). The
-- claim's hold, if it had one, is over: an operator has decided for it. A validated claim goes round as validated: the target
-- may have it, whatever it answered, and a refusal would put its slot on sale. Second call: the caller finds the letter gone.
-- Locks: letter (held by the caller) → claim → those of a claim.
create function intake.replay_one(p_msg_id bigint, p_letter jsonb) returns text
language plpgsql set search_path = '' as $$
declare
  v_original jsonb := intake.original_of(p_letter);
  v_slot_id uuid := intake.uuid_or_null(v_original ->> 'resource_id');
  v_state text := case when v_original ->> 'state' = 'validated' then 'validated' else 'queued' end;
  v_claim public.claims;
  v_answer intake.claim_answer;
  v_request intake.claim_request;
  v_user_id text;
  v_msg_id bigint;
begin
  select c.* into v_claim from public.claims c
  where c.claim_id = coalesce(intake.uuid_or_null(v_original ->> 'claim_id'), v_slot_id)
  for update;
  if v_claim.end_as is not null then
    return 'claim_is_ending';
  elsif v_claim.state = 'dead_letter' and coalesce(v_claim.msg_id, p_msg_id) = p_msg_id then
    v_msg_id := public.intake_queue_send(v_original
      || jsonb_build_object('state', v_state, 'replayed_from', p_msg_id));
    update public.claims c
    set state = v_state::public.claim_state, msg_id = v_msg_id, hold_until = null
    where c.claim_id = v_claim.claim_id;
    return 'replayed';
  elsif v_claim.claim_id is not null and v_claim.freed_at is null then
    return 'claim_is_' || v_claim.state;
  elsif v_claim.claim_id is null and (v_slot_id is null or not exists (
    select from public.claims c where c.slot_id = v_slot_id and c.freed_at is null
  )) then
    -- Put there by hand, and no live claim has its slot: it goes back on the queue as it was, to be judged anew.
    perform public.intake_queue_send(case
      when jsonb_typeof(v_original) = 'object' then v_original || jsonb_build_object('replayed_from', p_msg_id)
      else v_original
    end);
    update public.inventory_slots s
    set status = 'RESERVED', locked_by = v_original ->> 'user_id', locked_at = now()
    where s.id = v_slot_id and s.status = 'AVAILABLE';
    return 'replayed';
  end if;
  if exists (
    select from public.engine_config c
    where c.pool_id = coalesce(v_claim.pool_id, v_original ->> 'pool_id') and c.confirm_by = 'payment'
  ) then
    return 'needs_payment';
  end if;
  v_user_id := coalesce(v_claim.user_id, v_original ->> 'user_id');
  if (length(v_user_id) between 1 and 200) is not true then
    return 'malformed';
  end if;
  v_request.user_id := v_user_id;
  v_request.verified := coalesce(v_claim.verified, intake.is_verified(v_original));
  v_request.trusted := true;
  v_request.secret_hash := v_claim.secret_hash;
  v_request.address := v_claim.address;
  v_answer := intake.claim_one(coalesce(v_claim.pool_id, v_original ->> 'pool_id'), v_request, false);
  return v_answer.outcome;
end
$$;

-- Promise: each of the dead letters goes round again as intake.replay_one says; one that found its way leaves the dead
-- letters, its last form kept in their archive. All in one transaction, with one audit row a letter.
-- p_dry_run changes nothing and answers would_replay or not_found. Second call: not_found.
-- Locks: the letters, in the order of their ids → those of replay_one.
create function public.replay_dead_letters(
  p_msg_ids bigint[], p_actor text, p_reason text default null, p_dry_run boolean default false
)
returns table (msg_id bigint, outcome text)
language plpgsql security definer set search_path = '' as $$
declare
  v_asked record;
begin
  for v_asked in select l.* from intake.lock_letters(p_msg_ids) l loop
    msg_id := v_asked.msg_id;
    if p_dry_run or not v_asked.is_there then
      outcome := case when v_asked.is_there then 'would_replay' else 'not_found' end;
    else
      outcome := intake.replay_one(msg_id, v_asked.letter);
      if outcome in ('replayed', 'claimed') then
        perform pgmq.archive('intake_dlq', msg_id);
      end if;
      perform intake.write_audit(p_actor, 'dead_letter_replay', msg_id, p_reason, v_asked.letter, outcome);
    end if;
    return next;
  end loop;
end
$$;

-- Promise: the claim that waits with this dead letter, where it was paid for; else null. Second call: the same. Locks: none.
create function intake.paid_claim_of(p_msg_id bigint, p_letter jsonb) returns uuid
language sql stable set search_path = '' as $$
  select c.claim_id from public.claims c
  where c.claim_id = intake.uuid_or_null(p_letter ->> 'claim_id') and c.state = 'dead_letter' and c.paid
    and coalesce(c.msg_id, p_msg_id) = p_msg_id;
$$;

-- Promise: each of the dead letters is gone for good, its last form kept in their archive, and answers discarded; the one that
-- its claim waits with is ending, and gone when the ledger knows (20260224100013_ends.sql): then the claim is discarded and
-- its slot back on sale. One whose slot is sold elsewhere stays and answers ticket_conflict: "sluice reconcile
-- --fix" gives the slot to the ticket's claim first. One of a claim that was paid for stays and answers paid: it ends by a void, which
-- begins in the ledger (request_void in DB2). All in one transaction, with one audit row for each letter that answers ending,
-- discarded or ticket_conflict. p_dry_run changes nothing and answers would_discard, ticket_conflict, paid or not_found. claim_id is that of the claim that is ending, or paid.
-- Second call: ending, then not_found.
-- Locks: the letters, in the order of their ids → their claims → those of intake.free_claims.
create function public.discard_dead_letters(
  p_msg_ids bigint[], p_actor text, p_reason text default null, p_dry_run boolean default false
)
returns table (msg_id bigint, outcome text, claim_id uuid)
language plpgsql security definer set search_path = '' as $$
declare
  v_slot_ids uuid[] := '{}';
  v_asked record;
begin
  for v_asked in select l.* from intake.lock_letters(p_msg_ids) l loop
    msg_id := v_asked.msg_id;
    claim_id := null;
    outcome := case
      when not v_asked.is_there then 'not_found'
      when intake.is_sold_elsewhere(v_asked.letter) then 'ticket_conflict'
      when intake.paid_claim_of(v_asked.msg_id, v_asked.letter) is not null then 'paid'
      when p_dry_run then 'would_discard'
      else 'discarded'
    end;
    if outcome = 'discarded' then
      select c.claim_id into claim_id from public.claims c
      where c.claim_id = intake.uuid_or_null(v_asked.letter ->> 'claim_id') and c.state = 'dead_letter'
        and coalesce(c.msg_id, v_asked.msg_id) = v_asked.msg_id
      for update;
      if found then
        outcome := 'ending';
        perform intake.begin_ends(array[claim_id], 'discarded', coalesce(p_reason, 'discarded'));
      else
        v_slot_ids := v_slot_ids || intake.uuid_or_null(v_asked.letter ->> 'resource_id');
        perform pgmq.archive('intake_dlq', v_asked.msg_id);
      end if;
    end if;
    if outcome = 'paid' then
      claim_id := intake.paid_claim_of(v_asked.msg_id, v_asked.letter);
    elsif v_asked.is_there and not p_dry_run then
      perform intake.write_audit(p_actor, 'dead_letter_discard', msg_id, p_reason, v_asked.letter, outcome);
    end if;
    return next;
  end loop;
  perform intake.free_claims('{}', 'discarded', null, v_slot_ids);
end
$$;
