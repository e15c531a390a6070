-- WEBHOOKS, process. A worker takes due events under a lease, runs their handlers, and marks them in the
-- transaction of the effect. Who finishes names the lease's token: one that was taken over touches nothing.
-- attempts counts tries that ended in an answer; a worker that died is a takeover, because dying is not failing.

-- Promise: the handler of each kind of event in the arrays; a kind that has none is left out. Second call: the same.
-- Locks: none.
create function webhook.find_handlers(
  p_webhook_ids uuid[],
  p_providers text[],
  p_event_types text[]
)
returns table (webhook_id uuid, provider text, event_type text, kind text, name text)
language sql
stable
set search_path = ''
as $$
  select distinct on (k.webhook_id, k.provider, k.event_type) k.webhook_id, k.provider, k.event_type, h.kind, h.name
  from (
    select distinct t.webhook_id, t.provider, t.event_type
    from unnest(p_webhook_ids, p_providers, p_event_types) as t (webhook_id, provider, event_type)
  ) k
  join public.webhook_handlers h
    on h.provider in (k.provider, split_part(k.provider, ':', 1))
    and (h.webhook_id = k.webhook_id or h.webhook_id is null)
    and (h.event_type = k.event_type
      or right(h.event_type, 1) = '*' and starts_with(k.event_type, left(h.event_type, -1)))
  order by k.webhook_id, k.provider, k.event_type,
    h.webhook_id nulls last, (h.event_type = k.event_type) desc, length(h.event_type) desc, length(h.provider) desc;
$$;

-- Promise: how long an event waits after its p_attempts-th failed try: 2, 5, 15, 60 seconds, no more than the cap,
-- give or take a fifth, so that events that failed together do not come back together. Second call: another jitter.
-- Locks: none.
create function webhook.backoff(
  p_attempts int,
  p_cap_sec int
)
returns interval
language sql
volatile
set search_path = ''
as $$
  select make_interval(secs =>
    least((array[2, 5, 15, 60])[least(greatest(p_attempts, 1), 4)], p_cap_sec) * (0.8 + 0.4 * random()));
$$;

-- Promise: the events end their try as their outcomes say, and give up their leases:
--   success, skipped, dead_letter   they have ended
--   failed                          tried again after a while, or a dead letter when it was the last attempt
--   again                           something else was in the way (a lock): tried again in a moment, not counted
--   pending                         handed back: due at once, not counted
-- Second call: marks them again; the caller knows that they are its own. Locks: the events (held by the caller).
create function webhook.mark_events(
  p_ids uuid[],
  p_outcomes text[],
  p_errors text[]
)
returns table (id uuid, status public.webhook_event_status, error text)
language plpgsql
set search_path = ''
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  c_error_length constant int := 2000;
  v_now timestamptz := clock_timestamp();
begin
  if 'failed' = any (p_outcomes) then
    p_outcomes := array(
      select case when t.outcome = 'failed' and e.attempts >= coalesce(p.max_attempts, 5) then 'dead_letter'
        else t.outcome end
      from unnest(p_ids, p_outcomes) with ordinality as t (id, outcome, ordinal)
      left join public.webhook_events e on e.id = t.id
      left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
      order by t.ordinal
    );
  end if;
  return query
  update public.webhook_events e
  set status = case t.outcome when 'again' then 'failed' else t.outcome end::public.webhook_event_status,
    attempts = case when t.outcome in ('again', 'pending') then greatest(e.attempts - 1, 0) else e.attempts end,
    next_attempt_at = case t.outcome
      when 'pending' then v_now
      when 'again' then v_now + interval '1 second' * (0.5 + random())
      when 'failed' then v_now + webhook.backoff(e.attempts, coalesce((
        select p.backoff_cap_sec from public.webhook_endpoints p where p.webhook_id = e.webhook_id
      ), 60))
    end,
    processed_at = case when t.outcome in ('success', 'skipped') then v_now end,
    last_attempt_at = v_now,
    error = left(t.error, c_error_length),
    lease_token = null,
    lease_until = null
  from unnest(p_ids, p_outcomes, p_errors) as t (id, outcome, error)
  where e.id = t.id
  returning e.id, e.status, e.error;
end
$$;

-- Promise: the ids of up to p_limit events that are due, longest due first, as take_events describes them.
-- Second call: the same in this transaction, others elsewhere. Locks: the events; what others have locked is skipped.
create function webhook.lock_due(
  p_now timestamptz,
  p_limit int,
  p_handlers text[],
  p_webhook_id uuid
)
returns uuid[]
language plpgsql
set search_path = ''
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  -- Usually every handler is served, and then no event's handler has to be looked up to know whether to take it.
  v_choosy boolean := exists (
    select from public.webhook_handlers h where h.kind = 'typescript' and h.name <> all (p_handlers)
  );
begin
  return array(
    select e.id
    from public.webhook_events e
    where e.status in ('pending', 'failed', 'processing')
      and e.next_attempt_at <= p_now
      and (p_webhook_id is null or e.webhook_id = p_webhook_id)
      and (not v_choosy or not exists (
        select from webhook.find_handlers(array[e.webhook_id], array[e.provider], array[e.event_type]) h
        where h.kind = 'typescript' and h.name <> all (p_handlers)
      ))
    order by e.next_attempt_at, e.arrival
    limit p_limit
    for update skip locked
  );
end
$$;

-- Promise: up to p_limit due events, longest due first, each under a lease of its endpoint's lease_sec. Due is a new
-- or failed one whose time has come, and one whose lease has run out: that is taken over, and the tenth time it becomes
-- a dead letter instead. takeovers > 0 says that a worker died over it: process it alone, so that it cannot drag others
-- with it. Of events whose handler is written in TypeScript only those that p_handlers names; null takes all. Only for
-- these is payload filled in: of the others the worker needs the lease, and nobody should carry megabytes for nothing.
-- Second call: other events, until the leases have run out. Locks: the events, until commit; what others have locked
-- is skipped.
create function webhook.take_events(
  p_limit int,
  p_handlers text[] default '{}',
  p_webhook_id uuid default null
)
returns table (
  id uuid, lease_token uuid, webhook_id uuid, provider text, event_id text, event_type text, occurred_at timestamptz,
  attempts int, payload jsonb, handler_kind text, handler_name text, idempotency_key text, max_attempts int,
  takeovers int
)
language plpgsql
security definer
set search_path = ''
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  c_takeovers_max constant int := 10;
  v_now timestamptz := clock_timestamp();
  v_ids uuid[] := webhook.lock_due(v_now, p_limit, p_handlers, p_webhook_id);
  v_lost uuid[] := array(
    select e.id from public.webhook_events e
    where e.id = any (v_ids) and e.status = 'processing' and e.takeovers + 1 >= c_takeovers_max
  );
begin
  if v_lost <> '{}' then
    perform webhook.mark_events(v_lost, array_fill('dead_letter'::text, array[cardinality(v_lost)]),
      array_fill('lease_lost_repeatedly'::text, array[cardinality(v_lost)]));
  end if;
  return query
  with taken as (
    update public.webhook_events e
    set status = 'processing',
      attempts = e.attempts + case e.status when 'processing' then 0 else 1 end,
      takeovers = e.takeovers + case e.status when 'processing' then 1 else 0 end,
      last_attempt_at = v_now,
      lease_token = gen_random_uuid(),
      (lease_until, next_attempt_at) = (
        select l.until, l.until
        from (
          select v_now + make_interval(secs => coalesce(max(p.lease_sec), 60)) as until
          from public.webhook_endpoints p where p.webhook_id = e.webhook_id
        ) l
      )
    where e.id = any (v_ids) and e.id <> all (v_lost)
    returning e.*
  )
  select t.id, t.lease_token, t.webhook_id, t.provider, t.event_id, t.event_type, t.occurred_at, t.attempts,
    case when h.kind = 'typescript' then t.payload end, h.kind, h.name, coalesce(t.idempotency_key, t.provider || ':' || t.event_id), coalesce(p.max_attempts, 5),
    t.takeovers
  from taken t
  left join webhook.find_handlers(
    array(select k.webhook_id from taken k), array(select k.provider from taken k),
    array(select k.event_type from taken k)
  ) h on h.webhook_id = t.webhook_id and h.provider = t.provider and h.event_type = t.event_type
  left join public.webhook_endpoints p on p.webhook_id = t.webhook_id
  order by t.arrival;
end
$$;

-- An event on its way through its handler. kind is that of the handler, null where there is none.
create type webhook.task as (
  id uuid,
  event_type text,
  kind text,
  handler text,
  outcome text,
  error text
);

-- Promise: what the SQL handler p_name answers for each of the events, in the order of their arrival: null where it
-- took the effect, else why there is nothing to do. Raises what the handler raises. Second call: calls it again.
-- Locks: those of the handler.
-- The only dynamic SQL here: handlers are rows of a table, so that a project adds its own without touching this file.
-- The name is resolved to a function of the right signature first, and what stands in the statement is that
-- function's own name, quoted by the server.
create function webhook.call_handler(
  p_name text,
  p_ids uuid[]
)
returns table (id uuid, answer text)
language plpgsql
set search_path = ''
as $$
declare
  v_function regprocedure := pg_catalog.to_regprocedure(p_name || '(public.webhook_events)');
begin
  if v_function is null then
    raise exception 'there is no function %(public.webhook_events)', p_name;
  end if;
  return query execute format(
    'select e.id, %s(e) from public.webhook_events e where e.id = any ($1) order by e.arrival', v_function::regproc
  ) using p_ids;
  -- What a handler defers to the commit would fail there together with everybody else's effects.
  set constraints all immediate;
end
$$;

-- Promise: the tasks with their outcomes: those of one handler together in one subtransaction, so that a batch without
-- trouble pays for one; if anything raises, nothing of that has happened, and each is tried alone. SL030 is a dead
-- letter at once; a deadlock, a lock that was not to be had and a serialization failure are not the event's fault.
-- Second call: calls the handlers again. Locks: those of the handlers.
create function webhook.run_tasks(p_tasks webhook.task[])
returns setof webhook.task
language plpgsql
set search_path = ''
as $$
declare
  v_handler text;
  v_task webhook.task;
begin
  return query
  select t.id, t.event_type, t.kind, t.handler, 'skipped', 'no handler for ' || t.event_type
  from unnest(p_tasks) t
  where t.kind is null;
  for v_handler in select distinct t.handler from unnest(p_tasks) t where t.kind = 'sql' loop
    begin
      return query
      select c.id, null::text, 'sql', v_handler, case when c.answer is null then 'success' else 'skipped' end, c.answer
      from webhook.call_handler(
        v_handler, array(select t.id from unnest(p_tasks) t where t.kind = 'sql' and t.handler = v_handler)
      ) c;
      continue;
    exception when others then
      null;
    end;
    for v_task in select t.* from unnest(p_tasks) t where t.kind = 'sql' and t.handler = v_handler loop
      begin
        select c.answer into v_task.error from webhook.call_handler(v_handler, array[v_task.id]) c;
        v_task.outcome := case when v_task.error is null then 'success' else 'skipped' end;
      exception
        when sqlstate 'SL030' then
          v_task.outcome := 'dead_letter';
          v_task.error := sqlerrm;
        when deadlock_detected or lock_not_available or serialization_failure then
          v_task.outcome := 'again';
          v_task.error := sqlerrm;
        when others then
          v_task.outcome := 'failed';
          v_task.error := sqlerrm;
      end;
      return next v_task;
    end loop;
  end loop;
end
$$;

-- Promise: those of the events whose lease is still held, in the order of their arrival, with their handlers.
-- Second call: the same. Locks: the events, in the order of their ids.
create function webhook.held_tasks(
  p_ids uuid[],
  p_lease_tokens uuid[]
)
returns webhook.task[]
language plpgsql
set search_path = ''
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  perform from public.webhook_events e where e.id = any (p_ids) order by e.id for update;
  return (
    with held as materialized (
      select e.id, e.webhook_id, e.provider, e.event_type, e.arrival
      from unnest(p_ids, p_lease_tokens) as t (id, lease_token)
      join public.webhook_events e on e.id = t.id
      where e.status = 'processing' and e.lease_token = t.lease_token
    )
    select array_agg((e.id, e.event_type, h.kind, h.name, null, null)::webhook.task order by e.arrival)
    from held e
    left join webhook.find_handlers(
      array(select k.webhook_id from held k), array(select k.provider from held k),
      array(select k.event_type from held k)
    ) h on h.webhook_id = e.webhook_id and h.provider = e.provider and h.event_type = e.event_type
  );
end
$$;

-- Promise: each of the events takes its effect, exactly once, and is marked in the same transaction: success; skipped
-- (no handler, or the handler has nothing to do); failed (with its error and the time of the next try) or dead_letter.
-- lost_lease: it is another's by now, nothing changes. typescript: not for this function, nothing changes.
-- One that fails takes nothing of the others with it; one that kills the server does: the worker sends an event that
-- was taken over alone. Second call: lost_lease. Locks: events, in the order of their ids → those of the handlers.
create function webhook.process_events(
  p_ids uuid[],
  p_lease_tokens uuid[]
)
returns table (id uuid, status public.webhook_event_status, error text, outcome text)
language plpgsql
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_tasks webhook.task[] := webhook.held_tasks(p_ids, p_lease_tokens);
  v_done webhook.task[] := array(select r from webhook.run_tasks(v_tasks) r);
begin
  return query
  select t.id, m.status, m.error,
    coalesce(m.status::text, case when h.id is null then 'lost_lease' else 'typescript' end)
  from unnest(p_ids) with ordinality as t (id, ordinal)
  left join webhook.mark_events(
    array(select d.id from unnest(v_done) d), array(select d.outcome from unnest(v_done) d),
    array(select d.error from unnest(v_done) d)
  ) m on m.id = t.id
  left join unnest(v_tasks) h on h.id = t.id
  order by t.ordinal;
end
$$;
