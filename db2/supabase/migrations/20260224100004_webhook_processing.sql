-- WEBHOOKS, process. A worker takes due events under a lease, runs their handlers, and marks them in the
-- transaction of the effect. Who finishes names the lease's token: one that was taken over touches nothing.
-- attempts counts tries that ended in an answer; a worker that died is a takeover, because dying is not failing.
-- A suspect is an event that was taken over and has not been finished since: a worker may have died of it. It is taken
-- alone, so that whoever dies of it loses no neighbour's lease.

-- Which handler an event has depends on nothing else.
create type webhook.kind as (
  webhook_id uuid,
  provider text,
  event_type text
);

-- Promise: the kinds among the due events whose handler is written in TypeScript and none of p_handlers, as far as one
-- has to look to find p_limit others. By kind and not by event: thousands that wait for one handler cost one search for
-- it. Second call: the same. Locks: none.
create function webhook.parked_kinds(p_now timestamptz, p_limit int, p_handlers text[]) returns webhook.kind[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_parked webhook.kind[] := '{}';
  v_found webhook.kind[];
begin
  loop
    v_found := array(
      select (h.webhook_id, h.provider, h.event_type)::webhook.kind
      from (
        select array_agg(k.webhook_id) as webhook_ids, array_agg(k.provider) as providers,
          array_agg(k.event_type) as event_types
        from (
          select e.webhook_id, e.provider, e.event_type
          from public.webhook_events e
          where e.status in ('pending', 'failed', 'processing')
            and e.next_attempt_at <= p_now
            and (e.webhook_id, e.provider, e.event_type)::webhook.kind <> all (v_parked)
          order by e.next_attempt_at, e.arrival
          limit p_limit
        ) k
      ) a
      cross join lateral webhook.find_handlers(a.webhook_ids, a.providers, a.event_types) h
      where h.kind = 'typescript' and h.name <> all (p_handlers)
    );
    exit when v_found = '{}';
    v_parked := v_parked || v_found;
  end loop;
  return v_parked;
end
$$;

-- Promise: up to p_limit events that are due, longest due first, as take_events describes them; is_lost: its lease ran
-- out for the last time. Second call: the same in this transaction, others elsewhere. Locks: the events; what others
-- have locked is skipped.
create function webhook.lock_due(p_now timestamptz, p_limit int, p_handlers text[], p_webhook_id uuid)
returns table (id uuid, is_suspect boolean, is_lost boolean)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  c_takeovers_max constant int := 10;
  v_parked webhook.kind[] := '{}';
begin
  -- Usually every handler is served, and then no event's handler has to be looked up to know whether to take it.
  if exists (select from public.webhook_handlers h where h.kind = 'typescript' and h.name <> all (p_handlers)) then
    v_parked := webhook.parked_kinds(p_now, p_limit, p_handlers);
  end if;
  return query
  select e.id, e.status = 'processing' or e.takeovers > 0, e.status = 'processing' and e.takeovers + 1 >= c_takeovers_max
  from public.webhook_events e
  where e.status in ('pending', 'failed', 'processing')
    and e.next_attempt_at <= p_now
    and (p_webhook_id is null or e.webhook_id = p_webhook_id)
    and (v_parked = '{}' or (e.webhook_id, e.provider, e.event_type)::webhook.kind <> all (v_parked))
  order by e.next_attempt_at, e.arrival
  limit p_limit
  for update skip locked;
end
$$;

-- Promise: those of up to p_limit due events that are taken together, as take_events describes them; those that were lost
-- for the last time are dead letters now, and where that were all of them, others may be due behind: it looks again.
-- Null when none is due. Second call: the same in this transaction, others elsewhere. Locks: those of lock_due.
create function webhook.choose_due(p_now timestamptz, p_limit int, p_handlers text[], p_webhook_id uuid)
returns uuid[]
language plpgsql set search_path = '' as $$
declare
  v_lost uuid[];
  v_suspects uuid[];
  v_ids uuid[];
  v_is_suspect_first boolean;
begin
  loop
    select array_agg(d.id) filter (where d.is_lost),
      array_agg(d.id order by d.place) filter (where d.is_suspect and not d.is_lost),
      array_agg(d.id) filter (where not d.is_suspect),
      min(d.place) filter (where d.is_suspect and not d.is_lost) < min(d.place) filter (where not d.is_suspect)
    into v_lost, v_suspects, v_ids, v_is_suspect_first
    from webhook.lock_due(p_now, p_limit, p_handlers, p_webhook_id) with ordinality as d (id, is_suspect, is_lost, place);
    if v_is_suspect_first or v_ids is null then
      v_ids := v_suspects[1:1];
    end if;
    exit when v_lost is null;
    perform webhook.mark_events(v_lost, array_fill('dead_letter'::text, array[cardinality(v_lost)]),
      array_fill('lease_lost_repeatedly'::text, array[cardinality(v_lost)]));
    exit when v_ids is not null;
  end loop;
  return v_ids;
end
$$;

-- Promise: up to p_limit due events, longest due first, each under a lease of its endpoint's lease_sec. Due is a new
-- or failed one whose time has come, and one whose lease has run out: that is taken over, and the tenth time it becomes
-- a dead letter instead. When the longest due one is a suspect it comes alone; else suspects are left out, until each is
-- the longest due: so they wait for nobody who came after them, and nobody who came before waits for them.
-- Of events whose handler is written in TypeScript only those that p_handlers names; null takes all. Only for these is
-- payload filled in: of the others the worker needs the lease, and nobody should carry megabytes for nothing.
-- Second call: other events, until the leases have run out. Locks: the events, until commit; what others have locked
-- is skipped.
create function webhook.take_events(p_limit int, p_handlers text[] default '{}', p_webhook_id uuid default null)
returns table (
  id uuid, lease_token uuid, webhook_id uuid, provider text, event_id text, event_type text, occurred_at timestamptz,
  attempts int, payload jsonb, handler_kind text, handler_name text, idempotency_key text, max_attempts int,
  takeovers int
)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_ids uuid[] := webhook.choose_due(v_now, p_limit, p_handlers, p_webhook_id);
begin
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
          select v_now + make_interval(secs => coalesce(max(p.lease_sec), (webhook.default_limits()).lease_sec)) as until
          from public.webhook_endpoints p where p.webhook_id = e.webhook_id
        ) l
      )
    where e.id = any (v_ids)
    returning e.*
  )
  select t.id, t.lease_token, t.webhook_id, t.provider, t.event_id, t.event_type, t.occurred_at, t.attempts,
    case when h.kind = 'typescript' then t.payload end, h.kind, h.name,
    coalesce(t.idempotency_key, t.provider || ':' || t.event_id),
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
    raise exception 'there is no function %(public.webhook_events)', p_name;
  elsif not exists (
    select from pg_catalog.pg_proc p
    where p.oid = v_function and p.prorettype = 'text'::regtype and not p.proretset and p.prokind = 'f'
  ) then
    raise exception '% is not a function that returns text', v_function;
  end if;
  return query execute format(
    'select e.id, %s(e) from public.webhook_events e where e.id = any ($1) order by e.arrival', v_function::regproc
  ) using p_ids;
  -- What a handler defers to the commit would fail there together with everybody else's effects.
  set constraints all immediate;
end
$$;

-- Promise: the tasks with their outcomes: those of one handler together in one subtransaction, so that a batch without
-- trouble pays for one; if anything raises, nothing of that has happened, and each is tried alone, as long as there is
-- patience: waiting for a lock again and again would outlast the statement, and then all would be for nothing. Those
-- that were not reached are due again in a moment. A canceled statement is raised: what stopped it is gone then, and the
-- next try would go on for ever. Second call: calls the handlers again. Locks: those of the handlers.
create function webhook.run_tasks(p_tasks webhook.task[]) returns setof webhook.task
language plpgsql set search_path = '' as $$
declare
  c_patience constant interval := '5 seconds';
  v_handler text;
  v_task webhook.task;
  v_until timestamptz;
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
    for v_task in select t.* from unnest(p_tasks) t where t.kind = 'sql' and t.handler = v_handler loop
      begin
        if clock_timestamp() > v_until then
          v_task.outcome := 'again';
        else
          select c.answer into v_task.error from webhook.call_handler(v_handler, array[v_task.id]) c;
          v_task.outcome := case when v_task.error is null then 'success' else 'skipped' end;
        end if;
      exception when assert_failure or others then
        v_task.outcome := webhook.verdict(sqlstate);
        v_task.error := sqlerrm;
      end;
      return next v_task;
    end loop;
  end loop;
end
$$;

-- Promise: those of the events whose lease is still held, each once, with their handlers: in the order of their arrival,
-- but those that had trouble before last, so that it is not always the same who wait behind them.
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
-- One that fails takes nothing of the others with it; one that kills its session or outlasts the statement does, for this
-- try: then nothing of it has happened, and the caller sends them in smaller sets, or their leases run out.
-- Second call: lost_lease. Locks: events, in the order of their ids → those of the handlers.
create function webhook.process_events(p_ids uuid[], p_lease_tokens uuid[])
returns table (id uuid, status public.webhook_event_status, error text, outcome text)
language plpgsql security definer set search_path = '' as $$
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
