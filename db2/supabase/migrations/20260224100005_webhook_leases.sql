-- WEBHOOKS, one event at a time. The door's inline mode, the fenced pair that handlers in TypeScript use in
-- their own transaction, and claim_next_event / mark_event_result for workers that know no lease tokens.

-- Promise: the event is processed now, without a lease, exactly as process_events would, and how it stands is the
-- answer. One that has ended answers its status unchanged; one whose handler is written in TypeScript answers
-- typescript, unchanged; an id that nobody has answers no row. A worker that has a lease on it loses that.
-- Second call: the same answer, or the next try of one that failed. Locks: the event; waits for who has it.
create function webhook.process_event(p_id uuid)
returns table (status public.webhook_event_status, error text, outcome text)
language plpgsql
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_event public.webhook_events;
  v_task webhook.task;
begin
  select e.* into v_event from public.webhook_events e where e.id = p_id for update;
  if not found then
    return;
  end if;
  select h.kind, h.name into v_task.kind, v_task.handler
  from webhook.find_handlers(array[v_event.webhook_id], array[v_event.provider], array[v_event.event_type]) h;
  if v_event.status in ('success', 'skipped', 'dead_letter') or v_task.kind = 'typescript' then
    return query
    select v_event.status, v_event.error,
      case when v_event.status in ('success', 'skipped', 'dead_letter') then v_event.status::text else 'typescript' end;
    return;
  end if;
  if v_event.status <> 'processing' then
    update public.webhook_events e set attempts = e.attempts + 1 where e.id = p_id;
  end if;
  v_task.id := p_id;
  v_task.event_type := v_event.event_type;
  select r.* into v_task from webhook.run_tasks(array[v_task]) r;
  return query
  select m.status, m.error, m.status::text
  from webhook.mark_events(array[p_id], array[v_task.outcome], array[v_task.error]) m;
end
$$;

-- Promise: a lease on the event, as take_events gives it, or null when it has ended, is leased, or is nobody's.
-- For the inline mode of handlers in TypeScript. Second call: null, until the lease has run out. Locks: the event.
create function webhook.begin_event(p_id uuid)
returns uuid
language sql
security definer
set search_path = ''
as $$
  update public.webhook_events e
  set status = 'processing',
    attempts = e.attempts + case e.status when 'processing' then 0 else 1 end,
    takeovers = e.takeovers + case e.status when 'processing' then 1 else 0 end,
    last_attempt_at = clock_timestamp(),
    lease_token = gen_random_uuid(),
    (lease_until, next_attempt_at) = (
      select l.until, l.until
      from (
        select clock_timestamp() + make_interval(secs => coalesce(max(p.lease_sec), 60)) as until
        from public.webhook_endpoints p where p.webhook_id = e.webhook_id
      ) l
    )
  where e.id = p_id
    and (e.status in ('pending', 'failed') or e.status = 'processing' and e.lease_until <= clock_timestamp())
  returning e.lease_token;
$$;

-- Promise: true when the lease is still held, and then until the end of this transaction nobody can take it over.
-- Called before a handler's effect, in its transaction. Second call: the same. Locks: the event.
create function webhook.hold_event(
  p_id uuid,
  p_lease_token uuid
)
returns boolean
language plpgsql
security definer
set search_path = ''
as $$
begin
  perform from public.webhook_events e
  where e.id = p_id and e.lease_token = p_lease_token and e.status = 'processing'
  for update;
  return found;
end
$$;

-- Promise: the event ends its try with this outcome (success, skipped, failed, dead_letter, or pending to hand it back
-- uncounted) and its status now is the answer: failed is a dead letter after the last attempt. lost_lease: it is
-- another's by now, nothing changes. Called after a handler's effect, in its transaction. Second call: lost_lease.
-- Locks: the event.
create function webhook.finish_event(
  p_id uuid,
  p_lease_token uuid,
  p_outcome text,
  p_error text default null
)
returns text
language plpgsql
security definer
set search_path = ''
as $$
begin
  if (p_outcome in ('success', 'skipped', 'failed', 'dead_letter', 'pending')) is not true then
    raise exception 'unknown outcome' using errcode = 'SL001';
  end if;
  if not webhook.hold_event(p_id, p_lease_token) then
    return 'lost_lease';
  end if;
  return (select m.status::text from webhook.mark_events(array[p_id], array[p_outcome], array[p_error]) m);
end
$$;

-- Promise: pushes the end of the leases that are still held into the future by their endpoints' lease_sec, for long
-- calls. Returns the ids of those; the others are lost. Second call: pushes again. Locks: the events, in the order of
-- their ids.
create function webhook.extend_leases(
  p_ids uuid[],
  p_lease_tokens uuid[]
)
returns setof uuid
language plpgsql
security definer
set search_path = ''
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  perform from public.webhook_events e where e.id = any (p_ids) order by e.id for update;
  return query
  update public.webhook_events e
  set (lease_until, next_attempt_at) = (
      select l.until, l.until
      from (
        select clock_timestamp() + make_interval(secs => coalesce(max(p.lease_sec), 60)) as until
        from public.webhook_endpoints p where p.webhook_id = e.webhook_id
      ) l
    )
  from unnest(p_ids, p_lease_tokens) as t (id, lease_token)
  where e.id = t.id and e.lease_token = t.lease_token and e.status = 'processing'
  returning e.id;
end
$$;

-- Promise: the event that is longest due, of p_webhook_id or of any, whatever its handler is; no row when none is due.
-- It is processing then, under a lease. Second call: the next one. Locks: those of take_events.
create function webhook.claim_next_event(p_webhook_id uuid default null)
returns table (id uuid, webhook_id uuid, event_id text, payload jsonb, signature text)
language plpgsql
security definer
set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select t.id, t.webhook_id, t.event_id, e.payload, e.signature
  from webhook.take_events(1, null, p_webhook_id) t
  join public.webhook_events e on e.id = t.id;
end
$$;

-- Promise: the event that claim_next_event gave ends its try with p_status: failed is tried again after a while, or
-- a dead letter after the last attempt; pending puts it back at once. Raises SL033 when it is not processing or its
-- lease has run out: without a token nobody can tell whose it is then. Second call: SL033. Locks: the event.
create function webhook.mark_event_result(
  p_id uuid,
  p_status public.webhook_event_status,
  p_error text default null
)
returns void
language plpgsql
security definer
set search_path = ''
as $$
begin
  if p_status is null or p_status = 'processing' then
    raise exception 'no result: %', coalesce(p_status::text, 'null') using errcode = 'SL001';
  end if;
  perform from public.webhook_events e
  where e.id = p_id and e.status = 'processing' and e.lease_until > clock_timestamp()
  for update;
  if not found then
    raise exception 'event % is not being processed, or its lease has run out', p_id using errcode = 'SL033';
  end if;
  perform webhook.mark_events(array[p_id], array[p_status::text], array[p_error]);
end
$$;

-- Promise: up to p_limit due events with SQL handlers, or with none, have had a try; returns how many. For cron, where
-- no worker runs: all of it is one transaction, so a try that dies is as if it had never begun.
-- Second call: the next events. Locks: those of take_events and process_events.
create function webhook.work(p_limit int default 1000)
returns int
language plpgsql
security definer
set search_path = ''
as $$
declare
  v_ids uuid[];
  v_lease_tokens uuid[];
begin
  select array_agg(t.id), array_agg(t.lease_token) into v_ids, v_lease_tokens from webhook.take_events(p_limit) t;
  return (select count(*) from webhook.process_events(v_ids, v_lease_tokens));
end
$$;

-- Every minute where pg_cron is; workers of Node may run as well, each event is taken by one of them.
do $$
begin
  if pg_catalog.to_regnamespace('cron') is not null then
    perform cron.schedule('webhook_work', '* * * * *', 'select webhook.work()');
  end if;
end
$$;
