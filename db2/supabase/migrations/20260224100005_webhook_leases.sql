-- WEBHOOKS, how a try ends: waits and marks. Then one event at a time: the door's inline mode, the fenced pair that
-- handlers in TypeScript use in their own transaction, claim_next_event / mark_event_result for workers that know no
-- lease tokens, and cron.

-- Promise: how long an event waits after its p_attempts-th failed try: 2, 5, 15, 60 seconds, then twice as long each
-- time, no more than the cap, give or take a fifth, so that events that failed together do not come back together.
-- Second call: another jitter. Locks: none.
create function webhook.backoff(p_attempts int, p_cap_sec int) returns interval
language sql volatile set search_path = '' as $$
  select make_interval(secs => least(
    coalesce((array[2, 5, 15])[greatest(p_attempts, 1)], 60 * 2 ^ least(p_attempts - 4, 11)), p_cap_sec
  ) * (0.8 + 0.4 * random()));
$$;

-- Promise: the outcome (webhook.mark_events) of a try that ended in this SQLSTATE: SL030 is a dead letter at once, SL034
-- asks to come later; a deadlock, a lock timeout and a serialization failure mean that another session was in the way;
-- no connection, no resources, a server that stops or lost its disk, and a read-only server are outages.
-- Second call: the same. Locks: none.
create function webhook.verdict(p_sqlstate text) returns text
language sql immutable set search_path = '' as $$
  select case
    when p_sqlstate = 'SL030' then 'dead_letter'
    when p_sqlstate = 'SL034' then 'later'
    when p_sqlstate in ('40P01', '55P03', '40001') then 'again'
    when p_sqlstate ~ '^(08|53|57P|58)' or p_sqlstate in ('25006', '40003') then 'outage'
    else 'failed'
  end;
$$;

-- Promise: the events end their try as their outcomes say, and give up their leases:
--   success, skipped, dead_letter   they have ended
--   failed                          tried again after a while, or a dead letter when it was the last attempt
--   slow                            failed, because it outlasts the statement: a suspect from now on, so it is tried alone
-- Each of these is one more attempt. The others are not:
--   again                           something else was in the way (a lock): tried again in a moment
--   outage                          what it needs is away: tried again after 15 seconds
--   later                           not now, says the handler: tried again after the longest wait
--   pending                         handed back: due at once
-- After seven days of nothing but outage and later the event is a dead letter. An event that goes round again otherwise stops
-- being a suspect, and is in the lane of the handler it has now. p_counted: attempts that the take has counted already
-- (claim_next_event).
-- Second call: marks them again; the caller knows that they are its own. Locks: the events (held by the caller).
create function webhook.mark_events(p_ids uuid[], p_outcomes text[], p_errors text[], p_counted int default 0)
returns table (id uuid, status public.webhook_event_status, error text)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  c_error_length constant int := 2000;
  c_patience constant interval := '7 days';
  v_now timestamptz := clock_timestamp();
begin
  if p_outcomes && array['failed', 'slow', 'outage', 'later'] then
    p_outcomes := array(
      select case
        when t.outcome in ('failed', 'slow') and greatest(e.attempts - p_counted, 0) + 1
          >= coalesce(p.max_attempts, (webhook.default_limits()).max_attempts) then 'dead_letter'
        when t.outcome in ('outage', 'later') and e.waiting_since < v_now - c_patience then 'dead_letter'
        else t.outcome
      end
      from unnest(p_ids, p_outcomes) with ordinality as t (id, outcome, ordinal)
      left join public.webhook_events e on e.id = t.id
      left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
      order by t.ordinal
    );
  end if;
  return query
  update public.webhook_events e
  set status = case when t.outcome in ('slow', 'again', 'outage', 'later') then 'failed' else t.outcome
    end::public.webhook_event_status,
    attempts = greatest(e.attempts - p_counted, 0)
      + case when t.outcome in ('again', 'outage', 'later', 'pending') then 0 else 1 end,
    lane = case when t.outcome in ('success', 'skipped', 'dead_letter') then e.lane
      else webhook.lane_for(e.webhook_id, e.provider, e.event_type) end,
    takeovers = case when t.outcome in ('success', 'skipped', 'dead_letter') then e.takeovers
      when t.outcome = 'slow' then 1 else 0 end,
    next_attempt_at = case
      when t.outcome = 'pending' then v_now
      when t.outcome = 'again' then v_now + interval '1 second' * (0.5 + random())
      when t.outcome in ('failed', 'slow', 'outage', 'later') then v_now + webhook.backoff(
        case t.outcome when 'outage' then 3 when 'later' then 100 else greatest(e.attempts - p_counted, 0) + 1 end,
        coalesce((select p.backoff_cap_sec from public.webhook_endpoints p where p.webhook_id = e.webhook_id),
          (webhook.default_limits()).backoff_cap_sec)
      )
    end,
    waiting_since = case
      when t.outcome in ('outage', 'later') then coalesce(e.waiting_since, v_now)
      when t.outcome in ('again', 'pending') then e.waiting_since
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

-- Promise: the event is processed now, without a lease, exactly as process_events would, and how it stands is the
-- answer. One that has ended answers its status unchanged; one whose handler is written in TypeScript answers
-- typescript, unchanged; one that another transaction has locked (another delivery is processing it) answers in_flight,
-- unchanged, without waiting; an unknown id answers no row. A worker that has a lease on the event loses it. The row is
-- only locked while the handler runs, and written after it: a delivery of the same id must not wait for the handler.
-- Second call: the same answer, or the next try of one that failed. Locks: the event.
create function webhook.process_event(p_id uuid)
returns table (status public.webhook_event_status, error text, outcome text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_event public.webhook_events;
  v_task webhook.task;
begin
  select e.* into v_event from public.webhook_events e where e.id = p_id for update skip locked;
  if not found then
    return query select e.status, e.error, 'in_flight' from public.webhook_events e where e.id = p_id;
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
  v_task.id := p_id;
  v_task.event_type := v_event.event_type;
  select r.* into v_task from webhook.run_tasks(array[v_task]) r;
  return query
  select m.status, m.error, m.status::text
  from webhook.mark_events(array[p_id], array[v_task.outcome], array[v_task.error]) m;
end
$$;

-- Promise: true when the lease is still held, and then no worker can take it over until the end of this transaction.
-- Called before a handler's effect, in its transaction, which remembers it for finish_event. Second call: the same.
-- Locks: the event.
create function webhook.hold_event(p_id uuid, p_lease_token uuid) returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  perform from public.webhook_events e
  where e.id = p_id and e.lease_token = p_lease_token and e.status = 'processing'
  for update;
  if found then
    perform set_config('webhook.held', concat_ws(' ', current_setting('webhook.held', true), p_lease_token), true);
    return true;
  end if;
  return false;
end
$$;

-- Promise: the event ends its try with this outcome (of webhook.mark_events) and its status now is the answer: failed is
-- a dead letter after the last attempt. lost_lease: it is another's by now, nothing changes. Called after a handler's
-- effect, in its transaction. Raises SL030 for success and skipped where hold_event was not called in the same
-- transaction: then the handler has ended that by itself, and its effect stands without a mark.
-- Second call: lost_lease. Locks: the event.
create function webhook.finish_event(p_id uuid, p_lease_token uuid, p_outcome text, p_error text default null)
returns text
language plpgsql security definer set search_path = '' as $$
declare
  v_held text := current_setting('webhook.held', true);
begin
  if (p_outcome in ('success', 'skipped', 'failed', 'slow', 'dead_letter', 'again', 'outage', 'later', 'pending')) is not true then
    raise exception 'unknown outcome' using errcode = 'SL001';
  end if;
  if not webhook.hold_event(p_id, p_lease_token) then
    return 'lost_lease';
  end if;
  if p_outcome in ('success', 'skipped') and coalesce(strpos(v_held, p_lease_token::text), 0) = 0 then
    raise exception 'the handler has ended its transaction, so that its effect may stand without a mark'
      using errcode = 'SL030', hint = 'hold_event, the effect and finish_event belong into one transaction';
  end if;
  return (select m.status::text from webhook.mark_events(array[p_id], array[p_outcome], array[p_error]) m);
end
$$;

-- Promise: pushes the end of the leases that are still held into the future by their endpoints' lease_sec, for long
-- calls, and returns the ids of those. A locked event is left as it is: no worker can take it from the transaction that
-- has locked it, and the other events must not wait for that. Second call: pushes again. Locks: the events, in the order
-- of their ids; locked ones are skipped.
create function webhook.extend_leases(p_ids uuid[], p_lease_tokens uuid[]) returns setof uuid
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
  with held as materialized (
    select e.id
    from public.webhook_events e
    where e.id = any (p_ids) and e.status = 'processing'
      and (e.id, e.lease_token) in (select t.id, t.lease_token from unnest(p_ids, p_lease_tokens) as t (id, lease_token))
    order by e.id
    for update skip locked
  )
  update public.webhook_events e
  set (lease_until, next_attempt_at) = (
      select l.until, l.until from (
        select clock_timestamp()
          + make_interval(secs => coalesce(max(p.lease_sec), (webhook.default_limits()).lease_sec)) as until
        from public.webhook_endpoints p where p.webhook_id = e.webhook_id
      ) l
    )
  where e.id in (select h.id from held h)
  returning e.id;
end
$$;

-- Promise: the ids of events that are due, of p_webhook_id or of any, longest due first: the first p_limit of each lane.
-- Second call: the same. Locks: none.
create function webhook.first_due(p_webhook_id uuid, p_limit int) returns uuid[]
language plpgsql stable set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return array(
    select d.id
    from webhook.open_lanes() l
    cross join lateral (
      select e.id, e.next_attempt_at, e.arrival
      from public.webhook_events e
      where e.lane = l.lane and e.status in ('pending', 'failed', 'processing')
        and e.next_attempt_at <= clock_timestamp() and (p_webhook_id is null or e.webhook_id = p_webhook_id)
      order by e.next_attempt_at, e.arrival
      limit p_limit
    ) d
    order by d.next_attempt_at, d.arrival
  );
end
$$;

-- Promise: the event that is longest due, of p_webhook_id or of any, whatever its handler is; no row when none is due.
-- It is processing then, under a lease, which this session remembers for mark_event_result. This take alone counts the
-- attempt at once: workers of this kind read attempts before they mark, and may put an event back by an update of their
-- own. Second call: the next one. Locks: the event; what others have locked is skipped.
create function webhook.claim_next_event(p_webhook_id uuid default null)
returns table (id uuid, webhook_id uuid, event_id text, payload jsonb, signature text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  -- More than a session has under way; one that never marks must not grow for ever.
  c_remembered constant int := 100;
  v_claims jsonb := coalesce(nullif(current_setting('webhook.claims', true), ''), '{}');
  v_looked_at int := 10;
  v_ids uuid[];
  v_taken webhook.taken_event;
begin
  -- Others may have locked the first ones: then it looks further.
  loop
    v_ids := webhook.first_due(p_webhook_id, v_looked_at);
    select t.* into v_taken from webhook.take_first(v_ids) t;
    exit when v_taken.id is not null;
    if cardinality(v_ids) < v_looked_at then
      return;
    end if;
    v_looked_at := v_looked_at * 10;
  end loop;
  update public.webhook_events e set attempts = e.attempts + 1 where e.id = v_taken.id and v_taken.takeovers = 0;
  if (select count(*) from jsonb_object_keys(v_claims)) >= c_remembered then
    v_claims := '{}';
  end if;
  perform set_config('webhook.claims', (v_claims || jsonb_build_object(v_taken.id, v_taken.lease_token))::text, false);
  return query
  select e.id, e.webhook_id, e.event_id, e.payload, e.signature from public.webhook_events e where e.id = v_taken.id;
end
$$;

-- Promise: the event that claim_next_event gave ends its try with p_status: failed is tried again after a while, or
-- a dead letter after the last attempt; pending puts it back at once. Raises SL033 when it is not processing, its lease
-- has run out, or another worker has it by now. The session that claimed the event proves its lease by the token.
-- Another session (of a connection pool) may mark the event too, but only one that was never taken over: after a takeover
-- two workers may believe that they hold it, and this function cannot tell which of them asks. Second call: SL033.
-- Locks: the event.
create function webhook.mark_event_result(p_id uuid, p_status public.webhook_event_status, p_error text default null)
returns void
language plpgsql security definer set search_path = '' as $$
declare
  v_claims jsonb := coalesce(nullif(current_setting('webhook.claims', true), ''), '{}');
begin
  if p_status is null or p_status = 'processing' then
    raise exception 'no result: %', coalesce(p_status::text, 'null') using errcode = 'SL001';
  end if;
  perform from public.webhook_events e
  where e.id = p_id and e.status = 'processing' and e.lease_until > clock_timestamp()
    and case when v_claims ? p_id::text then v_claims ->> p_id::text = e.lease_token::text else e.takeovers = 0 end
  for update;
  if not found then
    raise exception 'event % is not being processed, its lease has run out, or it is another''s by now', p_id
      using errcode = 'SL033', hint = 'mark it on the connection that claimed it';
  end if;
  perform webhook.mark_events(array[p_id], array[p_status::text], array[p_error], 1);
  perform set_config('webhook.claims', (v_claims - p_id::text)::text, false);
end
$$;

-- Promise: due events with SQL handlers, or with none, have had a try, a few of each lane in turn: until nothing is due, about 50 s
-- have passed, or p_limit were tried. For cron, where no worker runs. A lane whose handler hangs or whose events cannot be finished
-- is left out from then on, keeps up no other, and is what this raises in the end. A procedure, because it commits each take before
-- it runs the handlers: otherwise a handler that kills its session would undo the take too, and the same events would be next for
-- ever. Postgres allows no commit in a procedure with security definer or a search path of its own, so this one has neither: its
-- caller needs the rights to all it calls.
-- Second call: the next events. Locks: those of take_events, then those of process_events.
create procedure webhook.work(p_limit int default null)
language plpgsql as $$
declare
  -- Few: the other lanes wait for these.
  c_batch constant int := 10;
  -- The job comes round each minute.
  c_most constant interval := '50 seconds';
  v_until timestamptz := clock_timestamp() + c_most;
  v_left int := p_limit;
  v_did_any boolean;
  v_lane int;
  v_stuck int[] := '{}';
  v_why text;
  v_ids uuid[];
  v_lease_tokens uuid[];
begin
  loop
    v_did_any := false;
    foreach v_lane in array array(
      select l.lane from webhook.event_lanes() l where l.kind is distinct from 'typescript' and l.lane <> all (v_stuck)
    ) loop
      select array_agg(t.id), array_agg(t.lease_token) into v_ids, v_lease_tokens
      from webhook.take_events(array[v_lane], array[least(v_left, c_batch)]) t;
      if v_ids is null then
        select array[t.id], array[t.lease_token] into v_ids, v_lease_tokens from webhook.take_suspect(array[v_lane]) t;
      end if;
      commit;
      continue when v_ids is null;
      -- The same as in the Node workers: never wait long for a lock, because other sessions queue up behind the waiter.
      perform pg_catalog.set_config('lock_timeout', '2s', true);
      -- By this name cancel_hung finds the session, until the commit. A statement timeout that was set in here would not count.
      perform pg_catalog.set_config('application_name', 'sluice-webhook-cron', true);
      begin
        -- An event whose handler has changed since it got its lane may be one for TypeScript: it gets its own lane.
        perform webhook.finish_event(p.id, l.lease_token, 'pending')
        from webhook.process_events(v_ids, v_lease_tokens) p
        join unnest(v_ids, v_lease_tokens) as l (id, lease_token) on l.id = p.id
        where p.outcome = 'typescript';
      exception when query_canceled or others then
        v_stuck := v_stuck || v_lane;
        -- The others have their time without what this one took of it.
        v_until := clock_timestamp() + c_most;
        if sqlstate = '57014' and pg_catalog.cardinality(v_ids) = 1 then
          perform webhook.finish_event(v_ids[1], v_lease_tokens[1], 'slow', sqlerrm);
        else
          -- Of several, each will be taken alone when its lease has run out.
          v_why := pg_catalog.format('events of handler %s wait: %s',
            (select l.handler_name from webhook.event_lanes() l where l.lane = v_lane), sqlerrm);
        end if;
      end;
      commit;
      v_did_any := true;
      v_left := v_left - pg_catalog.cardinality(v_ids);
      exit when v_left <= 0;
    end loop;
    -- Looked at between the rounds: every lane has its turn in each call.
    exit when not v_did_any or v_left <= 0 or clock_timestamp() >= v_until;
  end loop;
  if v_why is not null then
    raise exception '%', v_why;
  end if;
end
$$;

-- Promise: what webhook.work has waited for longer than p_after, as a worker of Node would, is canceled; the answer is how many
-- sessions that were. A job of its own, because the session that hangs cannot. Second call: 0, unless the next ones hang. Locks: none.
create function webhook.cancel_hung(p_after interval default '30 seconds') returns int
language sql set search_path = '' as $$
  select count(*) filter (where pg_catalog.pg_cancel_backend(a.pid))::int
  from pg_catalog.pg_stat_activity a
  where a.application_name = 'sluice-webhook-cron' and a.datname = current_database() and a.state = 'active'
    and a.xact_start < clock_timestamp() - p_after;
$$;
