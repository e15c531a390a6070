-- WEBHOOKS, process. A worker takes due events under a lease, lane by lane, runs their handlers, and marks them in the
-- transaction of the effect. Every finish names the lease's token: a worker whose lease was taken over changes nothing.
-- A take changes the lease and nothing else: attempts counts tries that ended. The death of a worker counts as a takeover,
-- because the handler did not fail.
-- A suspect is an event that was taken over and has not been finished since: it may have killed its worker. It is taken
-- alone, so that a worker that dies of it loses no other event's lease.

-- An event under a lease, as a worker gets it. attempts counts this try too. Only an event for a TypeScript handler has its
-- payload: for the others the worker needs just the lease, and megabytes need not travel.
create type webhook.taken_event as (
  id uuid,
  lease_token uuid,
  lane int,
  webhook_id uuid,
  provider text,
  event_id text,
  event_type text,
  occurred_at timestamptz,
  attempts int,
  payload jsonb,
  handler_kind text,
  handler_name text,
  idempotency_key text,
  max_attempts int,
  takeovers int
);

-- Promise: the lanes that have events, with when the first of each is due. One look in the index for each lane, however
-- many events it has. Second call: the same. Locks: none.
create function webhook.open_lanes() returns table (lane int, due_at timestamptz)
language plpgsql stable set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  select e.lane, e.next_attempt_at into lane, due_at
  from public.webhook_events e
  where e.status in ('pending', 'failed', 'processing')
  order by e.lane, e.next_attempt_at, e.arrival
  limit 1;
  while found loop
    return next;
    select e.lane, e.next_attempt_at into lane, due_at
    from public.webhook_events e
    where e.status in ('pending', 'failed', 'processing') and e.lane > open_lanes.lane
    order by e.lane, e.next_attempt_at, e.arrival
    limit 1;
  end loop;
end
$$;

-- Promise: the lanes that have events, due or not, with the handler of each: what a worker knows of a handler stays known
-- while its events wait. Lanes of disabled handlers are left out: their events wait. kind is null where the handler is gone, or
-- never was: the worker that takes such an event sees what becomes of it. Second call: the same. Locks: none.
create function webhook.event_lanes() returns table (lane int, kind text, handler_name text)
language plpgsql stable security definer set search_path = '' set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  select distinct on (l.lane) l.lane, h.kind, h.name
  from webhook.open_lanes() l
  left join public.webhook_handlers h on h.lane = l.lane
  where not (h.kind = 'typescript' and exists (select from webhook.handler_faults f where f.name = h.name)) is true
  order by l.lane, h.kind, h.name;
end
$$;

-- Promise: the events under new leases of their endpoints' lease_sec, in the order of their arrival. One whose lease had
-- run out is taken over. Second call: new leases. Locks: the events (held by the caller).
create function webhook.lease_events(p_ids uuid[]) returns setof webhook.taken_event
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  return query
  with taken as (
    update public.webhook_events e
    set status = 'processing',
      takeovers = e.takeovers + case e.status when 'processing' then 1 else 0 end,
      last_attempt_at = v_now,
      lease_token = gen_random_uuid(),
      (lease_until, next_attempt_at) = (
        select l.until, l.until
        from (
          select v_now + make_interval(secs => coalesce(max(p.lease_sec), (webhook.default_limits()).lease_sec)) as until
          from public.webhook_endpoints p where p.webhook_id = e.webhook_id
        ) l
      )
    where e.id = any (p_ids)
    returning e.*
  )
  select t.id, t.lease_token, t.lane, t.webhook_id, t.provider, t.event_id, t.event_type, t.occurred_at, t.attempts + 1,
    case when h.kind = 'typescript' then t.payload end, h.kind, h.name,
    -- The first colon ends the tenant, so that no two tenants have one key.
    coalesce(t.idempotency_key, replace(t.provider, ':', '/') || ':' || t.event_id),
    coalesce(p.max_attempts, (webhook.default_limits()).max_attempts), t.takeovers
  from taken t
  left join webhook.find_handlers(
    array(select k.webhook_id from taken k), array(select k.provider from taken k),
    array(select k.event_type from taken k)
  ) h on h.webhook_id = t.webhook_id and h.provider = t.provider and h.event_type = t.event_type
  left join public.webhook_endpoints p on p.webhook_id = t.webhook_id
  order by t.arrival;
end
$$;

-- Promise: of each of p_lanes up to its p_wanted due events, longest due first, each under a lease. Due is a new or failed
-- one whose time has come. Suspects are left to take_suspect. Events that wait in other lanes cost nothing.
-- Second call: other events. Locks: the events, until commit; what others have locked is skipped.
create function webhook.take_events(p_lanes int[], p_wanted int[]) returns setof webhook.taken_event
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_ids uuid[] := array(
    select d.id
    from unnest(p_lanes, p_wanted) as l (lane, wanted)
    cross join lateral (
      select e.id
      from public.webhook_events e
      where e.lane = l.lane and e.status in ('pending', 'failed') and e.takeovers = 0 and e.next_attempt_at <= v_now
      order by e.next_attempt_at, e.arrival
      limit l.wanted
      for update skip locked
    ) d
  );
begin
  return query select t.* from webhook.lease_events(v_ids) t;
end
$$;

-- Promise: one of these due events under a lease, the first that no other transaction has locked; null where there is
-- none. One whose lease has run out for the tenth time becomes a dead letter instead, and the next one is looked at.
-- Second call: the next. Locks: the event; what others have locked is skipped.
create function webhook.take_first(p_ids uuid[]) returns setof webhook.taken_event
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  c_takeovers_max constant int := 10;
  v_now timestamptz := clock_timestamp();
  v_id uuid;
  v_is_lost boolean;
begin
  loop
    select e.id, e.status = 'processing' and e.takeovers + 1 >= c_takeovers_max into v_id, v_is_lost
    from unnest(p_ids) with ordinality as i (id, place)
    join public.webhook_events e on e.id = i.id
    where e.status in ('pending', 'failed', 'processing') and e.next_attempt_at <= v_now
    order by i.place
    limit 1
    for update of e skip locked;
    exit when v_id is null or not v_is_lost;
    perform webhook.mark_events(array[v_id], '{dead_letter}', '{lease_lost_repeatedly}');
  end loop;
  return query select t.* from webhook.lease_events(array[v_id]) t where v_id is not null;
end
$$;

-- Promise: the suspect that is longest due in these lanes, under a lease; no row where none is. It looks at the events
-- that are first in each lane: behind a backlog a suspect waits for its turn, as its neighbours do. One that was lost
-- for the tenth time is a dead letter now. Second call: the next suspect. Locks: the event; what others have locked is
-- skipped.
create function webhook.take_suspect(p_lanes int[]) returns setof webhook.taken_event
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  -- Those in front of a suspect are taken and leave the front, so it comes into view.
  c_looked_at constant int := 100;
  v_now timestamptz := clock_timestamp();
  v_ids uuid[] := array(
    select d.id
    from unnest(p_lanes) as l (lane)
    cross join lateral (
      select e.id, e.status, e.takeovers, e.next_attempt_at, e.arrival
      from public.webhook_events e
      where e.lane = l.lane and e.status in ('pending', 'failed', 'processing') and e.next_attempt_at <= v_now
      order by e.next_attempt_at, e.arrival
      limit c_looked_at
    ) d
    where d.status = 'processing' or d.takeovers > 0
    order by d.next_attempt_at, d.arrival
  );
begin
  return query select t.* from webhook.take_first(v_ids) t;
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
-- function's own name, quoted by the server. It returns one text: of a set, an empty one would leave its event without
-- an answer.
create function webhook.call_handler(p_name text, p_ids uuid[]) returns table (id uuid, answer text)
language plpgsql set search_path = '' as $$
declare
  v_function regprocedure := pg_catalog.to_regprocedure(p_name || '(public.webhook_events)');
begin
  if v_function is null then
    raise exception 'the function %(public.webhook_events) does not exist', p_name;
  elsif not exists (
    select from pg_catalog.pg_proc p
    where p.oid = v_function and p.prorettype = 'text'::regtype and not p.proretset and p.prokind = 'f'
  ) then
    raise exception '% is not a function that returns text', v_function;
  end if;
  return query execute format(
    'select e.id, %s(e) from public.webhook_events e where e.id = any ($1) order by e.arrival', v_function::regproc
  ) using p_ids;
  -- A constraint that a handler defers would fail at commit, and undo the effects of all other events too.
  set constraints all immediate;
end
$$;

-- Promise: the tasks with their outcomes. The tasks of one handler run together in one subtransaction, so that a batch
-- without trouble pays for one. If anything raises, that subtransaction is undone and each task is tried alone, for a limited
-- time: waiting for locks again and again would outlast the statement, and all work would be lost. If the first three fail,
-- the fault is the handler's: the others are not tried, and keep their attempts. Tasks that were not reached are due again in
-- a moment. A canceled statement is raised: nothing would stop the next try, and it would run for ever.
-- Second call: calls the handlers again. Locks: those of the handlers.
create function webhook.run_tasks(p_tasks webhook.task[]) returns setof webhook.task
language plpgsql set search_path = '' as $$
declare
  c_patience constant interval := '5 seconds';
  -- As many make an outage of a handler in TypeScript (breaker.ts).
  c_failures_in_a_row constant int := 3;
  v_handler text;
  v_task webhook.task;
  v_until timestamptz;
  v_failures int;
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
    exception when assert_failure or others then
      null;
    end;
    v_until := clock_timestamp() + c_patience;
    v_failures := 0;
    for v_task in select t.* from unnest(p_tasks) t where t.kind = 'sql' and t.handler = v_handler loop
      begin
        if clock_timestamp() > v_until or v_failures >= c_failures_in_a_row then
          v_task.outcome := 'again';
        else
          select c.answer into v_task.error from webhook.call_handler(v_handler, array[v_task.id]) c;
          v_task.outcome := case when v_task.error is null then 'success' else 'skipped' end;
          -- The handler works: an event that fails from now on fails by itself.
          v_failures := null;
        end if;
      exception when assert_failure or others then
        v_task.outcome := webhook.verdict(sqlstate);
        v_task.error := sqlerrm;
        v_failures := v_failures + case v_task.outcome when 'failed' then 1 else 0 end;
      end;
      return next v_task;
    end loop;
  end loop;
end
$$;

-- Promise: those of the events whose lease is still held, each once, with their handlers: in the order of their arrival,
-- but events that had trouble before come last, so that the same events do not always wait behind them.
-- Second call: the same. Locks: the events, in the order of their ids.
create function webhook.held_tasks(p_ids uuid[], p_lease_tokens uuid[]) returns webhook.task[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  perform from public.webhook_events e where e.id = any (p_ids) order by e.id for update;
  return (
    with held as materialized (
      select distinct e.id, e.webhook_id, e.provider, e.event_type, e.arrival, e.error is not null as had_trouble
      from unnest(p_ids, p_lease_tokens) as t (id, lease_token)
      join public.webhook_events e on e.id = t.id
      where e.status = 'processing' and e.lease_token = t.lease_token
    )
    select array_agg((e.id, e.event_type, h.kind, h.name, null, null)::webhook.task order by e.had_trouble, e.arrival)
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
-- verdict is what the try itself meant (webhook.mark_events): of a last attempt failed, where the status is dead_letter.
-- One that fails takes nothing of the others with it; one that kills its session or outlasts the statement does, for this
-- try: then nothing of it has happened, and the caller sends them in smaller sets, or their leases run out.
-- Second call: lost_lease. Locks: events, in the order of their ids → those of the handlers.
create function webhook.process_events(p_ids uuid[], p_lease_tokens uuid[])
returns table (id uuid, status public.webhook_event_status, error text, outcome text, verdict text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_tasks webhook.task[] := webhook.held_tasks(p_ids, p_lease_tokens);
  v_done webhook.task[] := array(select r from webhook.run_tasks(v_tasks) r);
begin
  return query
  select t.id, m.status, m.error,
    coalesce(m.status::text, case when h.id is null then 'lost_lease' else 'typescript' end), d.outcome
  from unnest(p_ids) with ordinality as t (id, ordinal)
  left join webhook.mark_events(
    array(select d.id from unnest(v_done) d), array(select d.outcome from unnest(v_done) d),
    array(select d.error from unnest(v_done) d)
  ) m on m.id = t.id
  left join unnest(v_tasks) h on h.id = t.id
  left join unnest(v_done) d on d.id = t.id
  order by t.ordinal;
end
$$;
