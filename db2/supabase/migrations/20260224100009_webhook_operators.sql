-- WEBHOOKS, what operators do. Each action is one transaction with its audit rows, and answers per id.

-- Promise: the webhook_ids of all events, also those that no endpoint has. One look in the index for each of them,
-- however many events there are. Second call: the same. Locks: none.
create function webhook.webhook_ids() returns uuid[]
language sql stable set search_path = '' as $$
  with recursive known as (
    (select e.webhook_id from public.webhook_events e order by e.webhook_id limit 1)
    union all
    select (
      select e.webhook_id from public.webhook_events e where e.webhook_id > k.webhook_id order by e.webhook_id limit 1
    )
    from known k
    where k.webhook_id is not null
  )
  select array(select k.webhook_id from known k where k.webhook_id is not null);
$$;

-- Promise: the text as a JSON path. Raises SL001 where it is none. Second call: the same. Locks: none.
create function webhook.read_path(p_path text) returns jsonpath
language plpgsql immutable set search_path = '' as $$
begin
  return p_path::jsonpath;
exception when others then
  raise exception '%', sqlerrm using errcode = 'SL001', hint = 'a JSON path of Postgres, such as $.data.object.id';
end
$$;

-- Promise: the error without what differs from one failure to the next: what is quoted is "…"; an address of the web or of mail, and
-- a word with a digit in it (an id, a number, a time), is #. At most 200 characters, so that it can be given as a filter.
-- Second call: the same. Locks: none.
create function audit.error_shape(p_error text) returns text
language sql immutable parallel safe set search_path = '' as $$
  select left(regexp_replace(
    regexp_replace(
      regexp_replace(
        regexp_replace(p_error, '"[^"]*"|`[^`]*`|(?<!\w)''[^'']*''(?!\w)', '"…"', 'g'),
        '\w+://[^\s"]+|[\w.+-]+@[\w-]+(\.[\w-]+)+', '#', 'g'
      ),
      '[\w-]*\d[\w-]*', '#', 'g'
    ),
    '#([.:/]+#)+', '#', 'g'
  ), 200);
$$;

-- Promise: up to p_limit events after p_after and the first p_offset, in the order of their ids, which is that of their time,
-- filtered by what is not null (p_since and p_until by when they were received, the second one excluded; a p_provider 'hmac' means those
-- of 'hmac:<endpoint>' too; a p_event_type that ends in * is a prefix; p_error is a part of the error or of its shape, in any
-- case; p_path finds something other than false and null in the payload); without payload and body. Raises SL001 where p_path
-- is not a JSON path.
-- With p_newest_first it is the other way round, and "after" means before. Page on with p_after = the last id.
-- Second call: the same. Locks: none.
create function webhook.list_events(
  p_webhook_id uuid default null,
  p_event_id text default null,
  p_provider text default null,
  p_statuses text[] default null,
  p_since timestamptz default null,
  p_until timestamptz default null,
  p_after uuid default null,
  p_limit int default 100,
  p_newest_first boolean default false,
  p_event_type text default null,
  p_error text default null,
  p_path text default null,
  p_offset int default 0
)
returns table (
  id uuid, webhook_id uuid, name text, provider text, event_id text, event_type text, occurred_at timestamptz,
  received_at timestamptz, processed_at timestamptz, last_attempt_at timestamptz, next_attempt_at timestamptz,
  status public.webhook_event_status, attempts int, takeovers int, error text, skipped_by text,
  backfilled boolean
)
language plpgsql stable security definer set search_path = ''
-- A plan for the filters that are given: dead letters among millions of healthy events come by their own index.
set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  v_statuses public.webhook_event_status[] := p_statuses;
  v_path jsonpath := webhook.read_path(p_path);
  -- Every index on the event's id begins with another column.
  v_webhook_ids uuid[] := case when p_event_id is not null and p_webhook_id is null then webhook.webhook_ids() end;
begin
  return query
  select e.id, e.webhook_id, p.name, e.provider, e.event_id, e.event_type, e.occurred_at, e.received_at, e.processed_at,
    e.last_attempt_at, e.next_attempt_at, e.status, e.attempts, e.takeovers, e.error, e.skipped_by,
    e.backfilled
  from public.webhook_events e
  left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
  where (p_webhook_id is null or e.webhook_id = p_webhook_id)
    and (p_event_id is null or e.event_id = p_event_id)
    and (v_webhook_ids is null or e.webhook_id = any (v_webhook_ids))
    and (p_provider is null or p_provider in (e.provider, split_part(e.provider, ':', 1)))
    and (v_statuses is null or e.status = any (v_statuses))
    and (p_since is null or e.received_at >= p_since)
    and (p_until is null or e.received_at < p_until)
    and (p_event_type is null or e.event_type = p_event_type
      or right(p_event_type, 1) = '*' and starts_with(e.event_type, left(p_event_type, -1)))
    and (p_error is null or strpos(lower(e.error), lower(p_error)) > 0
      or strpos(lower(audit.error_shape(e.error)), lower(p_error)) > 0)
    and (v_path is null or jsonb_path_query_first(e.payload, v_path, '{}', true) not in ('false', 'null'))
    and (p_after is null or case when p_newest_first then e.id < p_after else e.id > p_after end)
  order by case when p_newest_first then null else e.id end, e.id desc
  limit least(p_limit, 1000) offset p_offset;
end
$$;

-- Promise: all there is about an event: its row as JSON, its endpoint's name, the raw body in base64 (of a delivery with
-- several events the whole delivery), the alarms about its id, the handler that has it (null where none has), and how many attempts
-- its endpoint allows; no row for an unknown id.
-- Second call: the same. Locks: none.
create function webhook.show_event(p_id uuid)
returns table (event jsonb, name text, raw_body text, alarms jsonb, handler text, max_attempts int)
language sql stable security definer set search_path = '' as $$
  select to_jsonb(e) - array['raw_body', 'lease_token', 'lane'], p.name,
    replace(encode(coalesce(e.raw_body, b.body), 'base64'), e'\n', ''),
    coalesce((
      select jsonb_agg(to_jsonb(a) - 'body' || jsonb_build_object(
        'body', replace(encode(a.body, 'base64'), e'\n', '')
      ) order by a.id)
      from public.webhook_alarms a
      where a.provider = e.provider and a.event_id = e.event_id
    ), '[]'),
    (select min(h.name) from public.webhook_handlers h where h.lane = e.lane),
    coalesce(p.max_attempts, (webhook.default_limits()).max_attempts)
  from public.webhook_events e
  left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
  left join public.webhook_bodies b on b.id = e.body_id
  where e.id = p_id;
$$;

-- Promise: the error of the event with pseudonyms for the users that its payload names as user_id: it goes into the audit log, whose
-- rows no erasure can change. Second call: the same. Locks: those of audit.pseudonym.
create function webhook.error_for_log(p_event public.webhook_events) returns text
language plpgsql set search_path = '' as $$
declare
  v_error text := p_event.error;
  v_user_id text;
begin
  for v_user_id in
    select distinct u #>> '{}' from jsonb_path_query(p_event.payload, '$.**.user_id') u
    where strpos(p_event.error, u #>> '{}') > 0
  loop
    v_error := audit.text_without(v_error, v_user_id, audit.pseudonym(v_user_id));
  end loop;
  return v_error;
end
$$;

-- Promise: one audit row for each of these events, with what they were before the action. Second call: a second row
-- each. Locks: none.
create function webhook.write_audit(p_ids uuid[], p_actor text, p_action text, p_reason text, p_details jsonb)
returns void
language sql set search_path = '' as $$
  insert into audit.audit_logs (actor, action, subject, reason, details)
  select p_actor, p_action, 'webhook event ' || e.id, p_reason, p_details || jsonb_build_object(
    'webhook_id', e.webhook_id, 'provider', e.provider, 'event_id', e.event_id, 'event_type', e.event_type,
    'status', e.status, 'attempts', e.attempts, 'takeovers', e.takeovers, 'error', webhook.error_for_log(e),
    'skipped_by', e.skipped_by
  )
  from public.webhook_events e
  where e.id = any (p_ids)
  order by e.id;
$$;

-- Promise: whether the event has ended, or failed, without an effect, so that it may be tried again. One that was skipped
-- without a try was not for its endpoint. Second call: the same. Locks: none.
create function webhook.can_go_round(p_event public.webhook_events) returns boolean
language sql immutable set search_path = '' as $$
  select p_event.status in ('failed', 'dead_letter') or p_event.status = 'skipped'
    and (p_event.skipped_by is not null or p_event.attempts = 0
      or p_event.error is not distinct from 'no handler for ' || p_event.event_type);
$$;

-- What became of an event that an operator named.
create type webhook.operator_answer as (id uuid, event_id text, outcome text);

-- Promise: each of the ids once, in their order, with its event where there is one. Second call: the same.
-- Locks: the events, in the order of their ids.
create function webhook.lock_named(p_ids uuid[]) returns table (id uuid, event public.webhook_events)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
begin
  perform from public.webhook_events e where e.id = any (p_ids) order by e.id for update;
  return query
  select n.id, e
  from (select distinct i as id from unnest(p_ids) i where i is not null) n
  left join public.webhook_events e on e.id = n.id
  order by n.id;
end
$$;

-- Promise: each of the events that failed, is a dead letter, or was skipped by an operator, for want of a handler (there may
-- be one now) or by its endpoint's settings (which may have changed) goes round again: pending, due at once, attempts from 0, with p_idempotency_key (if given) for its
-- handler's calls to others; what it was stands in the audit row. Answers replayed, or why not: already_processed (it has
-- ended by itself), in_flight (it is waiting or being processed), quarantined (it has no payload to process), misfit (it is
-- not for its endpoint as that is now), unknown.
-- p_dry_run changes nothing and answers would_replay. Second call: in_flight. Locks: the events, in the order of their
-- ids.
create function webhook.replay_events(
  p_ids uuid[],
  p_actor text,
  p_reason text default null,
  p_dry_run boolean default false,
  p_idempotency_key text default null
)
returns setof webhook.operator_answer
language plpgsql security definer set search_path = '' as $$
declare
  v_answers webhook.operator_answer[];
  v_replayed uuid[];
begin
  if (length(p_idempotency_key) between 1 and 200) is false then
    raise exception 'an idempotency key has 1 to 200 characters' using errcode = 'SL001';
  end if;
  v_answers := array(
    select (n.id, (n.event).event_id, case
      when (n.event).id is null then 'unknown'
      when (n.event).status in ('pending', 'processing') then 'in_flight'
      when not webhook.can_go_round(n.event) then 'already_processed'
      when (n.event).payload is null then 'quarantined'
      when webhook.misfit(p, (n.event).payload) is not null then 'misfit'
      when p_dry_run then 'would_replay'
      else 'replayed'
    end)::webhook.operator_answer
    from webhook.lock_named(p_ids) n
    left join public.webhook_endpoints p on p.webhook_id = (n.event).webhook_id
    order by n.id
  );
  v_replayed := array(select a.id from unnest(v_answers) a where a.outcome = 'replayed');
  perform webhook.write_audit(v_replayed, p_actor, 'webhook_replay', p_reason,
    jsonb_build_object('idempotency_key', p_idempotency_key));
  update public.webhook_events e
  set status = 'pending', attempts = 0, takeovers = 0, error = null, next_attempt_at = clock_timestamp(),
    processed_at = null, skipped_by = null, waiting_since = null,
    lane = webhook.lane_for(e.webhook_id, e.provider, e.event_type),
    idempotency_key = coalesce(p_idempotency_key, e.idempotency_key)
  where e.id = any (v_replayed);
  return query select * from unnest(v_answers);
end
$$;

-- Promise: each of the events that has not ended by itself is skipped for good, or until it is replayed. Answers skipped,
-- or why not: already_processed, already_skipped, in_flight (a worker has a lease on it), unknown. p_dry_run changes
-- nothing and answers would_skip. Second call: already_skipped. Locks: the events, in the order of their ids.
create function webhook.skip_events(
  p_ids uuid[],
  p_actor text,
  p_reason text default null,
  p_dry_run boolean default false
)
returns setof webhook.operator_answer
language plpgsql security definer set search_path = '' as $$
declare
  v_now timestamptz := clock_timestamp();
  v_answers webhook.operator_answer[] := array(
    select (n.id, (n.event).event_id, case
      when (n.event).id is null then 'unknown'
      when (n.event).status = 'success' then 'already_processed'
      when (n.event).status = 'skipped' then 'already_skipped'
      when (n.event).status = 'processing' and (n.event).lease_until > v_now then 'in_flight'
      when p_dry_run then 'would_skip'
      else 'skipped'
    end)::webhook.operator_answer
    from webhook.lock_named(p_ids) n
  );
  v_skipped uuid[] := array(select a.id from unnest(v_answers) a where a.outcome = 'skipped');
begin
  perform webhook.write_audit(v_skipped, p_actor, 'webhook_skip', p_reason, '{}');
  update public.webhook_events e
  set status = 'skipped', skipped_by = p_actor, error = p_reason, processed_at = v_now, next_attempt_at = null,
    lease_token = null, lease_until = null
  where e.id = any (v_skipped);
  return query select * from unnest(v_answers);
end
$$;

-- Promise: the ids of up to p_limit events whose payload may go, as prune_payloads describes them. Endpoint by endpoint, each by
-- the index, also of endpoints that are deleted: those that keep their payloads are not even looked at. Second call: the same.
-- Locks: the events; what others have locked is skipped.
create function webhook.lock_prunable(p_days int, p_limit int) returns uuid[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_default int := (select r.keep_days from audit.retention r where r.what = 'webhook_payloads');
begin
  return array(
    select k.id
    from unnest(webhook.webhook_ids()) w (webhook_id)
    left join public.webhook_endpoints p on p.webhook_id = w.webhook_id
    cross join lateral (
      select e.id
      from public.webhook_events e
      where e.status in ('success', 'skipped')
        and (e.payload is not null or e.raw_body is not null or e.body_id is not null)
        and e.webhook_id = w.webhook_id
        and e.received_at < now() - make_interval(days => coalesce(p_days, p.keep_payload_days, v_default))
      order by e.received_at
      limit p_limit
      for update skip locked
    ) k
    limit p_limit
  );
end
$$;

-- Promise: payload and raw body of up to p_limit events that were processed or skipped (quarantined ones too), and came
-- in more than p_days ago (null: more than their endpoint's keep_payload_days, or where that is null than audit.retention says),
-- are gone; so are bodies that no event points to any more, and with the last events those of alarms as old. The keys stay for
-- ever. Dead letters keep theirs: they can still be replayed. Returns how many events; call again until it is less than p_limit. An
-- audit row when p_actor is a person. Second call: the next ones, then 0. Locks: one prune at a time → the events.
create function webhook.prune_payloads(
  p_days int default null,
  p_limit int default 1000,
  p_actor text default null,
  p_reason text default null
)
returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_ids uuid[];
  v_body_ids uuid[];
begin
  if p_days < 0 then
    raise exception 'a number of days is not negative' using errcode = 'SL001';
  end if;
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sluice retention', 0));
  v_ids := webhook.lock_prunable(p_days, p_limit);
  v_body_ids := array(
    select e.body_id from public.webhook_events e where e.id = any (v_ids) and e.body_id is not null
  );
  update public.webhook_events e
  set payload = null, raw_body = null, body_id = null
  where e.id = any (v_ids);
  delete from webhook.replies r where r.event_id = any (v_ids);
  delete from public.webhook_bodies b
  where b.id = any (v_body_ids) and not exists (select from public.webhook_events e where e.body_id = b.id);
  if cardinality(v_ids) < p_limit then
    update public.webhook_alarms a set body = null where a.id = any (array(
      select o.id from public.webhook_alarms o
      left join public.webhook_endpoints p on p.webhook_id = o.webhook_id
      cross join audit.retention r
      where o.body is not null and r.what = 'webhook_payloads'
        and o.at < now() - make_interval(days => coalesce(p_days, p.keep_payload_days, r.keep_days))
      limit p_limit
    ));
  end if;
  if p_actor is not null then
    insert into audit.audit_logs (actor, action, subject, reason, details)
    values (p_actor, 'webhook_prune', 'webhook payloads', p_reason,
      jsonb_build_object('days', p_days, 'pruned', cardinality(v_ids)));
  end if;
  return cardinality(v_ids);
end
$$;

-- Promise: how many events of each endpoint wait, failed, are being processed or are dead letters, and for how long the
-- longest due one has been; an endpoint without any has zeros. Reads what has not ended and nothing else.
-- Second call: the same, later. Locks: none.
create function webhook.metrics()
returns table (
  webhook_id uuid, name text, provider text, pending bigint, failed bigint, processing bigint, dead_letter bigint,
  oldest_due_sec double precision
)
language sql stable security definer set search_path = '' as $$
  with open as (
    select e.webhook_id, e.provider, e.status, count(*) as events,
      min(e.next_attempt_at) filter (where e.next_attempt_at <= clock_timestamp()) as due_since
    from public.webhook_events e
    where e.status in ('pending', 'failed', 'processing')
    group by e.webhook_id, e.provider, e.status
    union all
    select e.webhook_id, e.provider, e.status, count(*), null
    from public.webhook_events e
    where e.status = 'dead_letter'
    group by e.webhook_id, e.provider, e.status
  )
  select coalesce(p.webhook_id, o.webhook_id), max(p.name),
    coalesce(max(p.provider), split_part(max(o.provider), ':', 1)),
    coalesce(sum(o.events) filter (where o.status = 'pending'), 0)::bigint,
    coalesce(sum(o.events) filter (where o.status = 'failed'), 0)::bigint,
    coalesce(sum(o.events) filter (where o.status = 'processing'), 0)::bigint,
    coalesce(sum(o.events) filter (where o.status = 'dead_letter'), 0)::bigint,
    coalesce(extract(epoch from clock_timestamp() - min(o.due_since)), 0)::double precision
  from public.webhook_endpoints p
  full join open o on o.webhook_id = p.webhook_id
  group by coalesce(p.webhook_id, o.webhook_id)
  order by 2, 1;
$$;

-- Promise: how many events of each endpoint each operator has replayed, ever. Second call: the same. Locks: none.
create function webhook.replay_totals() returns table (webhook_id uuid, operator text, total bigint)
language sql stable security definer set search_path = '' as $$
  select (l.details ->> 'webhook_id')::uuid, l.actor, count(*)
  from audit.audit_logs l
  where l.action = 'webhook_replay'
  group by 1, 2
  order by 1, 2;
$$;

-- Node's workers take events as well where pg_cron is, each event is taken by one of them. The stand-in of pg_cron, which has
-- run_job, runs no job of this database: workers do it all.
do $$
begin
  if pg_catalog.to_regnamespace('cron') is not null and pg_catalog.to_regproc('cron.run_job') is null then
    perform cron.schedule('webhook_work', '* * * * *', 'call webhook.work()');
    perform cron.schedule('webhook_hung', '* * * * *', 'select webhook.cancel_hung()');
  end if;
end
$$;
