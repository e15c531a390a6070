-- EVENT INBOX: where verified deliveries wait that DB2 could not take. A door that has verified a delivery and finds DB2 away
-- commits it here and answers 2xx, where its endpoint or site says on_outage = accept. A lane of the lease worker carries it on to
-- record_events or record_calls, whose keys absorb what DB2 had recorded after all. The endpoints and sites are copied here too,
-- so that a door that starts while DB2 is away can verify (docs/decisions/0029-event-inbox.md).

select pgmq.create('event_inbox');
select pgmq.create('event_inbox_dlq');

-- Not compressed: a take is bounded by bytes, and the size of a stored message is then the size that a worker gets.
alter table pgmq.q_event_inbox alter column message set storage external;

-- Endpoints and call sites as DB2 has them, and which names of secrets may be used and have a value in DB2's Vault; never a secret.
create table intake.copied_doors (
  kind text not null,
  name text not null,
  door jsonb not null,
  constraint one_copy_per_door primary key (kind, name),
  constraint door_kind_is_known check (kind in ('endpoint', 'site', 'secret'))
);

-- When DB2 was read for the copy; no row before the first time.
create table intake.doors_copied (
  only_row boolean primary key default true,
  read_at timestamptz not null,
  constraint one_row check (only_row)
);

-- Promise: the copy is p_doors ({kind: {name: door}}, all of them), read from DB2 at p_read_at, and true; false, and nothing
-- changes, where a later look is here already. A look from the future counts as one from now, so that none outlasts the next.
-- Second call: true, and only the time is written. Locks: the time, then what differs.
-- Definer, as all that follow: service_role needs no rights to queue and tables.
create function public.copy_doors(p_doors jsonb, p_read_at timestamptz) returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  -- The clock, not now(): another session may have written a later time than now() while this one waited for the row.
  insert into intake.doors_copied as c (read_at) values (least(p_read_at, now()))
  on conflict (only_row) do update set read_at = excluded.read_at
  where c.read_at <= excluded.read_at or c.read_at > clock_timestamp();
  if not found then
    return false;
  end if;
  delete from intake.copied_doors c
  where (c.kind, c.name) not in (select k.key, d.key from jsonb_each(p_doors) k cross join jsonb_each(k.value) d);
  insert into intake.copied_doors as c (kind, name, door)
  select k.key, d.key, d.value from jsonb_each(p_doors) k cross join jsonb_each(k.value) d
  on conflict on constraint one_copy_per_door do update set door = excluded.door where c.door <> excluded.door;
  return true;
end
$$;

-- Promise: one row: the copy of this endpoint or site, null where DB2 had none when it was read at read_at; read_at is null where
-- nothing was ever copied. Second call: the same. Locks: none.
create function public.copied_door(p_kind text, p_name text) returns table (door jsonb, read_at timestamptz)
language sql stable security definer set search_path = '' as $$
  select (select c.door from intake.copied_doors c where c.kind = p_kind and c.name = p_name),
    (select d.read_at from intake.doors_copied d);
$$;

-- Promise: one row: whether DB2 had this name on its list of secrets, whether DB2's Vault had a value for it (true also where the
-- copy does not say), and, for a name on the list, the value that this database's own Vault has; null if the Vault has none, or
-- this database has no Vault. Second call: the same. Locks: none.
create function public.copied_secret(p_name text)
returns table (is_allowed boolean, in_vault boolean, value text, read_at timestamptz)
language plpgsql stable security definer set search_path = '' as $$
begin
  select true, c.door -> 'in_vault' is distinct from 'false' into is_allowed, in_vault
  from intake.copied_doors c where c.kind = 'secret' and c.name = p_name;
  is_allowed := coalesce(is_allowed, false);
  in_vault := coalesce(in_vault, false);
  read_at := (select d.read_at from intake.doors_copied d);
  if is_allowed and pg_catalog.to_regclass('vault.decrypted_secrets') is not null then
    select s.decrypted_secret into value from vault.decrypted_secrets s where s.name = p_name;
  end if;
  return next;
end
$$;

-- Promise: each of p_messages ([{kind: event or call, door, received_at, ids, …}]) is in the inbox, in one transaction; returns
-- their ids. Raises SL001 for what is not such a message. Second call: they are there twice, which the keys of DB2 absorb.
-- Locks: none.
create function public.inbox_accept(p_messages jsonb) returns setof bigint
language plpgsql security definer set search_path = '' as $$
begin
  if exists (
    select from jsonb_array_elements(p_messages) m
    where coalesce(m ->> 'kind', '') not in ('event', 'call') or m ->> 'door' is null or m ->> 'received_at' is null
  ) then
    raise exception 'a message of the inbox has kind, door and received_at' using errcode = 'SL001';
  end if;
  return query
  insert into pgmq.q_event_inbox as q (vt, message)
  select clock_timestamp(), m from jsonb_array_elements(p_messages) m returning q.msg_id;
end
$$;

-- Promise: 0, the one lane of the inbox, where it has messages, also hidden ones; else no row. Second call: the same. Locks: none.
create function public.inbox_lanes() returns setof int
language sql stable security definer set search_path = '' as $$
  select 0 where exists (select from pgmq.q_event_inbox);
$$;

-- Promise: up to p_wanted due messages, oldest first, of about 4 MB at most or one larger one, leased for p_lease_sec.
-- With p_suspects those that lost their worker twice or more, else the others. attempts counts tries that DB2 refused, takeovers the
-- workers that died with it since its last finish. Second call: other messages. Locks: these messages; what is locked is skipped.
create function intake.take_inbox(p_wanted int, p_lease_sec int, p_suspects boolean)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
  c_bytes constant bigint := 4194304;
begin
  return query
  with due as materialized (
    select q.msg_id, pg_column_size(q.message) as size
    from pgmq.q_event_inbox q
    where q.vt <= clock_timestamp()
      and (case when q.read_ct < 2 then 0 else intake.takeovers(q.message, q.read_ct + 1) end >= 2) = p_suspects
    order by q.msg_id
    limit p_wanted
    for update skip locked
  ),
  fitting as materialized (
    select f.msg_id from (select d.*, sum(d.size) over (order by d.msg_id) - d.size as before from due d) f
    where f.before < c_bytes
  )
  update pgmq.q_event_inbox q
  set read_ct = q.read_ct + 1, vt = clock_timestamp() + make_interval(secs => p_lease_sec)
  from fitting f
  where q.msg_id = f.msg_id
  returning q.msg_id, q.read_ct, intake.count_in(q.message, 'tried'), intake.takeovers(q.message, q.read_ct), q.message;
end
$$;

-- Promise, second call, locks: intake.take_inbox without suspects.
create function public.inbox_take(p_wanted int, p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb)
language sql security definer set search_path = '' as $$
  select t.* from intake.take_inbox(p_wanted, p_lease_sec, false) t;
$$;

-- Promise, second call, locks: intake.take_inbox, one suspect at most.
create function public.inbox_take_suspect(p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb)
language sql security definer set search_path = '' as $$
  select t.* from intake.take_inbox(1, p_lease_sec, true) t;
$$;

-- Promise: the leases of those that are still this worker's last p_lease_sec from now; returns their ids. Second call: the same.
-- Locks: these messages.
create function public.inbox_extend(p_msg_ids bigint[], p_read_cts int[], p_lease_sec int) returns setof bigint
language sql security definer set search_path = '' as $$
  update pgmq.q_event_inbox q
  set vt = greatest(q.vt, clock_timestamp() + make_interval(secs => p_lease_sec))
  from unnest(p_msg_ids, p_read_cts) as t (msg_id, read_ct)
  where q.msg_id = t.msg_id and q.read_ct = t.read_ct
  returning q.msg_id;
$$;

-- Promise: the message as it was accepted, without what finishes and dead letters added. Second call: the same. Locks: none.
create function intake.accepted_of(p_message jsonb) returns jsonb
language sql immutable parallel safe set search_path = '' as $$
  select p_message - array['seen', 'tried', 'last_error', 'original_msg_id', 'routed_to_dlq_at', 'reason', 'takeovers'];
$$;

-- Promise: each delivery ends as its verdict says and answers it; if this worker has lost the message, it answers lost_lease
-- and changes nothing. recorded: DB2 has it, message gone. failed: DB2 refused it; tried again after 2, 5, 15, then 60 s, and
-- the tenth failure is a dead_letter. outage: DB2 was away or overloaded; due after a second, not counted. handed_back: due at
-- once, not counted. dead_letter: kept in event_inbox_dlq with its reason until an operator replays or discards it. All in one
-- transaction.
-- Second call: lost_lease for what left the inbox. Locks: the messages, in the order of their ids.
create function public.inbox_finish(p_msg_ids bigint[], p_read_cts int[], p_verdicts text[], p_reasons text[])
returns table (msg_id bigint, outcome text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  c_attempts constant int := 10;
  c_backoff_sec constant int[] := '{2,5,15,60}';
  v_held bigint[];
  v_outcomes text[];
begin
  if exists (
    select from unnest(p_verdicts) v
    where coalesce(v, '') not in ('recorded', 'failed', 'outage', 'handed_back', 'dead_letter')
  ) then
    raise exception 'each message needs a known verdict' using errcode = 'SL001';
  end if;
  perform from pgmq.q_event_inbox q where q.msg_id = any (p_msg_ids) order by q.msg_id for update;
  select array_agg(q.msg_id), array_agg(case
      when t.verdict = 'failed' and intake.count_in(q.message, 'tried') + 1 >= c_attempts then 'dead_letter'
      else t.verdict end)
  into v_held, v_outcomes
  from pgmq.q_event_inbox q
  join unnest(p_msg_ids, p_read_cts, p_verdicts) as t (msg_id, read_ct, verdict)
    on t.msg_id = q.msg_id and t.read_ct = q.read_ct
  where q.msg_id = any (p_msg_ids);
  insert into pgmq.q_event_inbox_dlq (vt, message)
  select clock_timestamp(), intake.accepted_of(q.message) || jsonb_build_object('original_msg_id', q.msg_id,
    'tried', intake.count_in(q.message, 'tried') + 1, 'takeovers', intake.takeovers(q.message, q.read_ct),
    'routed_to_dlq_at', now(), 'reason', coalesce(t.reason, 'refused'))
  from unnest(v_held, v_outcomes) h (msg_id, outcome)
  join pgmq.q_event_inbox q on q.msg_id = h.msg_id
  join unnest(p_msg_ids, p_reasons) t (msg_id, reason) on t.msg_id = h.msg_id
  where h.outcome = 'dead_letter'
  order by q.msg_id;
  delete from pgmq.q_event_inbox q
  using unnest(v_held, v_outcomes) h (msg_id, outcome)
  where q.msg_id = h.msg_id and h.outcome in ('recorded', 'dead_letter');
  update pgmq.q_event_inbox q
  set vt = clock_timestamp() + make_interval(secs => case h.outcome when 'handed_back' then 0 when 'outage' then 1
      else c_backoff_sec[least(cardinality(c_backoff_sec), intake.count_in(q.message, 'tried') + 1)] end),
    message = q.message || jsonb_build_object('seen', q.read_ct) || case when h.outcome = 'failed' then jsonb_build_object(
      'tried', intake.count_in(q.message, 'tried') + 1, 'last_error', t.reason) else '{}' end
  from unnest(v_held, v_outcomes) h (msg_id, outcome)
  join unnest(p_msg_ids, p_reasons) t (msg_id, reason) on t.msg_id = h.msg_id
  where q.msg_id = h.msg_id and h.outcome in ('failed', 'outage', 'handed_back');
  return query
  select t.msg_id, coalesce(h.outcome, 'lost_lease')
  from unnest(p_msg_ids) t (msg_id) left join unnest(v_held, v_outcomes) h (msg_id, outcome) on h.msg_id = t.msg_id;
end
$$;

-- Promise: one look at the inbox: accepted (deliveries ever put there, from its sequence, whose upper part is the number of a cell), waiting, oldest_sec (null where none
-- waits), dead_letters, and doors_age_sec, how old the copy of endpoints and sites is (null where there is none). Made to be asked once
-- a second. Second call: the same. Locks: none.
create function intake.inbox_level() returns jsonb
language sql stable set search_path = '' as $$
  select jsonb_build_object(
    'accepted', (select case when s.is_called then s.last_value & ((1::bigint << 40) - 1) else 0 end from pgmq.q_event_inbox_msg_id_seq s),
    'waiting', (select count(*) from pgmq.q_event_inbox),
    'oldest_sec', (
      select greatest(0, round(extract(epoch from clock_timestamp() - q.enqueued_at), 1))
      from pgmq.q_event_inbox q order by q.msg_id limit 1
    ),
    'dead_letters', (select count(*) from pgmq.q_event_inbox_dlq),
    'doors_age_sec', (
      select greatest(0, round(extract(epoch from clock_timestamp() - d.read_at), 1)) from intake.doors_copied d
    )
  );
$$;

-- Promise: what waits in the inbox, oldest first, without bodies; with p_dead its dead letters instead. ids are those that the sender
-- gave its events. Page on with p_after = the last msg_id. Second call: the same. Locks: none.
create function public.inbox_list(p_dead boolean default false, p_after bigint default 0, p_limit int default 100)
returns table (
  msg_id bigint, kind text, door text, ids jsonb, received_at timestamptz, attempts int, error text, dead_since timestamptz
)
language sql stable security definer set search_path = '' as $$
  select m.msg_id, m.message ->> 'kind', m.message ->> 'door', m.message -> 'ids', (m.message ->> 'received_at')::timestamptz,
    intake.count_in(m.message, 'tried'), coalesce(m.message ->> 'reason', m.message ->> 'last_error'),
    case when p_dead then m.enqueued_at end
  from (
    (select q.msg_id, q.message, q.enqueued_at from pgmq.q_event_inbox q
      where not p_dead and q.msg_id > coalesce(p_after, 0) order by q.msg_id limit p_limit)
    union all
    (select d.msg_id, d.message, d.enqueued_at from pgmq.q_event_inbox_dlq d
      where p_dead and d.msg_id > coalesce(p_after, 0) order by d.msg_id limit p_limit)
  ) m
  order by m.msg_id;
$$;

-- Promise: each of the dead letters of the inbox is back in it, due now, with no attempt used (replayed), or is gone (discarded, kept
-- in pgmq's archive), with an audit row each, in one transaction; unknown where there is none of that id. p_discard says which.
-- Second call: unknown for all. Locks: the letters, in the order of their ids.
create function intake.end_inbox_letters(p_msg_ids bigint[], p_discard boolean, p_actor text, p_reason text)
returns table (msg_id bigint, outcome text)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
  v_outcome constant text := case when p_discard then 'discarded' else 'replayed' end;
  v_found bigint[];
begin
  perform from pgmq.q_event_inbox_dlq d where d.msg_id = any (p_msg_ids) order by d.msg_id for update;
  v_found := array(select d.msg_id from pgmq.q_event_inbox_dlq d where d.msg_id = any (p_msg_ids) order by d.msg_id);
  insert into audit.audit_logs (actor, action, subject, reason, details)
  select p_actor, case when p_discard then 'inbox_discard' else 'inbox_replay' end, 'inbox dead letter ' || d.msg_id, p_reason,
    jsonb_build_object('outcome', v_outcome, 'letter', d.message - array['body', 'payload', 'events', 'call'])
  from pgmq.q_event_inbox_dlq d where d.msg_id = any (v_found) order by d.msg_id;
  if not p_discard then
    insert into pgmq.q_event_inbox (vt, message)
    select clock_timestamp(), intake.accepted_of(d.message)
    from pgmq.q_event_inbox_dlq d where d.msg_id = any (v_found) order by d.msg_id;
  end if;
  perform pgmq.archive('event_inbox_dlq', v_found);
  return query
  select t.msg_id, case when t.msg_id = any (v_found) then v_outcome else 'unknown' end
  from (select distinct i as msg_id from unnest(p_msg_ids) i where i is not null) t order by t.msg_id;
end
$$;

-- Promise, second call, locks: intake.end_inbox_letters, replayed.
create function public.inbox_replay(p_msg_ids bigint[], p_actor text, p_reason text default null)
returns table (msg_id bigint, outcome text)
language sql security definer set search_path = '' as $$
  select e.* from intake.end_inbox_letters(p_msg_ids, false, p_actor, p_reason) e;
$$;

-- Promise, second call, locks: intake.end_inbox_letters, discarded.
create function public.inbox_discard(p_msg_ids bigint[], p_actor text, p_reason text default null)
returns table (msg_id bigint, outcome text)
language sql security definer set search_path = '' as $$
  select e.* from intake.end_inbox_letters(p_msg_ids, true, p_actor, p_reason) e;
$$;
