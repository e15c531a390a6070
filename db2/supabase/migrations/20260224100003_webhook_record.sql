-- WEBHOOKS, record. Many deliveries become events in a few statements; the door answers 2xx after the commit.

-- One event of a delivery as it will be stored. The id is made before the insert, so that afterwards the row under a
-- key tells by its id whether it is this one.
create type webhook.delivery as (
  ordinal int,
  id uuid,
  webhook_id uuid,
  provider text,
  event_id text,
  event_type text,
  occurred_at timestamptz,
  payload jsonb,
  payload_hash text,
  dedupe_hash text,
  raw_body bytea,
  body_id uuid,
  signature text,
  status public.webhook_event_status,
  error text,
  next_attempt_at timestamptz,
  arrival bigint,
  body bytea,
  lane int,
  backfilled boolean,
  received_at timestamptz
);

-- Promise: the arguments of record_events as deliveries, in the order of the key that is likeliest to be met twice: the
-- signed body where there is one, else the id. Each is kept under its endpoint's tenant: two senders that both count their
-- events from 1, or know each other's ids, must not meet in one key. One that is not for its endpoint (webhook.misfit) is
-- skipped from the start. Second call: the same with other ids. Locks: none.
create function webhook.read_deliveries(
  p_webhook_ids uuid[], p_event_ids text[], p_event_types text[], p_occurred_at timestamptz[], p_payloads text[],
  p_bodies text[], p_body_ids uuid[], p_hashes text[], p_dedupe_hashes text[], p_signatures text[], p_quarantines text[],
  p_backfilled boolean, p_received_at timestamptz[]
)
returns webhook.delivery[]
language plpgsql set search_path = '' as $$
declare
  v_arrivals bigint[] := array(
    select nextval('webhook.arrival_seq') from generate_series(1, cardinality(p_event_ids))
  );
  v_types text[] := array(
    select coalesce(t.event_type, 'unknown')
    from unnest(p_event_ids, p_event_types) with ordinality as t (event_id, event_type, ordinal) order by t.ordinal
  );
  v_tenants text[] := array(
    select coalesce(e.tenant, 'unknown')
    from unnest(p_webhook_ids) with ordinality as t (webhook_id, ordinal)
    left join public.webhook_endpoints e on e.webhook_id = t.webhook_id
    order by t.ordinal
  );
begin
  return array(
    -- Materialized: a body of a megabyte is decoded once and parsed once.
    with posted as materialized (
      select t.*, decode(t.body64, 'base64') as body, e as endpoint
      from unnest(
        p_webhook_ids, v_tenants, p_event_ids, v_types, p_occurred_at, p_payloads, p_bodies, p_body_ids, p_hashes,
        p_dedupe_hashes, p_signatures, p_quarantines, p_received_at
      ) with ordinality as t (
        webhook_id, tenant, event_id, event_type, occurred_at, payload, body64, body_id, hash, dedupe_hash, signature,
        quarantine, received_at, ordinal
      )
      left join public.webhook_endpoints e on e.webhook_id = t.webhook_id
    ),
    parsed as materialized (
      select p.*, case when p.quarantine is null then coalesce(p.payload, convert_from(p.body, 'UTF8'))::jsonb end as content
      from posted p
    ),
    judged as materialized (
      select p.*, webhook.misfit(p.endpoint, p.content) as misfit from parsed p
    )
    select (
      d.ordinal,
      (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
        || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
      d.webhook_id, d.tenant, d.event_id, d.event_type, d.occurred_at, d.content, d.hash, d.dedupe_hash,
      case when d.body_id is null then d.body end, d.body_id, d.signature,
      case when d.quarantine is not null then 'dead_letter' when d.misfit is not null then 'skipped' else 'pending' end,
      coalesce('quarantine: ' || d.quarantine, d.misfit),
      case when coalesce(d.quarantine, d.misfit) is null then now() + make_interval(
        secs => case when (d.endpoint).mode = 'inline' and not p_backfilled and d.received_at is null
          then (d.endpoint).lease_sec else 0 end
      ) end,
      v_arrivals[d.ordinal], d.body, coalesce(h.lane, 0), p_backfilled, coalesce(d.received_at, now())
    )::webhook.delivery
    from judged d
    left join webhook.find_handlers(p_webhook_ids, v_tenants, v_types) h
      on h.webhook_id = d.webhook_id and h.provider = d.tenant and h.event_type = d.event_type
    order by d.tenant collate "C", coalesce(d.dedupe_hash, d.event_id) collate "C", d.event_id collate "C", d.ordinal
  );
end
$$;

-- Promise: the ordinals of the deliveries under whose id, or signed body, an event of the same tenant stands already.
-- Second call: the same, and what was committed meanwhile. Locks: none.
create function webhook.known_deliveries(p_deliveries webhook.delivery[]) returns int[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return array(
    select d.ordinal
    from unnest(p_deliveries) d
    -- One look by each key. Not "exists", which Postgres may answer by a hash of the whole table.
    where coalesce(
      (select true from public.webhook_events e where e.provider = d.provider and e.event_id = d.event_id),
      (select true from public.webhook_events e where e.provider = d.provider and e.dedupe_hash = d.dedupe_hash)
    )
  );
end
$$;

-- Promise: what record_events calls a delivery that is stored with this status. Second call: the same. Locks: none.
create function webhook.outcome_of(p_status public.webhook_event_status) returns text
language sql immutable set search_path = '' as $$
  select case p_status when 'pending' then 'recorded' when 'skipped' then 'skipped' else 'quarantined' end;
$$;

-- Promise: an event that another endpoint of its tenant skipped because it was not for that one (webhook.misfit: no try, no
-- operator) belongs to the first delivery of the same content that is for its own endpoint: pending, as if it had just come.
-- A backfilled event has the same content in other bytes.
-- Its arrival is the delivery's, by which compare_deliveries knows it. Second call: changes nothing. Locks: the events. One
-- that another transaction has locked is waited for: to pass it over would lose the event.
create function webhook.adopt_misfits(p_deliveries webhook.delivery[]) returns void
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  update public.webhook_events e
  set webhook_id = d.webhook_id, status = d.status, error = d.error, processed_at = null, arrival = d.arrival,
    next_attempt_at = d.next_attempt_at, lane = d.lane, signature = d.signature, payload = d.payload,
    payload_hash = d.payload_hash, raw_body = d.raw_body, body_id = null, backfilled = d.backfilled
  from unnest(p_deliveries) d
  where d.status = 'pending' and d.body_id is null
    and e.provider = d.provider and e.event_id = d.event_id
    and (e.payload_hash = d.payload_hash or e.backfilled or d.backfilled)
    and e.status = 'skipped' and e.attempts = 0 and e.skipped_by is null;
end
$$;

-- Promise: for each delivery what became of it, when others stood in the way: recorded, skipped or quarantined (its row is
-- there), duplicate (another row has its id, or its signed body), body_differs (the id is known with another body: an
-- alarm is raised, the event stays as it is; not where we asked the provider for one of the two: its records and its deliveries
-- may differ in bytes and in version). The body of a delivery with several events is kept when one of them is new.
-- Second call: the same, no second alarm. Locks: none but those of the new rows.
create function webhook.compare_deliveries(p_deliveries webhook.delivery[])
returns table (ordinal int, id uuid, outcome text, status public.webhook_event_status, lane int)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  with found as materialized (
    select d.ordinal, d.body_id, k.id, k.status, k.lane,
      case
        when k.arrival = d.arrival then webhook.outcome_of(d.status)
        when k.event_id = d.event_id and k.payload_hash <> d.payload_hash and not (k.backfilled or d.backfilled)
          then 'body_differs'
        else 'duplicate'
      end as outcome, k.payload_hash as stored_hash
    from unnest(p_deliveries) d
    -- One look by each key, however large the table has grown since the plan was made.
    cross join lateral (
      (select e.* from public.webhook_events e where e.provider = d.provider and e.event_id = d.event_id)
      union all
      (select e.* from public.webhook_events e where e.webhook_id = d.webhook_id and e.event_id = d.event_id)
      union all
      (select e.* from public.webhook_events e where e.provider = d.provider and e.dedupe_hash = d.dedupe_hash)
      limit 1
    ) k
  ),
  alarm as (
    insert into public.webhook_alarms
      (webhook_id, provider, event_id, stored_hash, received_hash, body, signature)
    select d.webhook_id, d.provider, d.event_id, f.stored_hash, d.payload_hash,
      coalesce(d.body, (
        select b.body from unnest(p_deliveries) b where b.body_id = d.body_id and b.body is not null limit 1
      )), d.signature
    from found f
    join unnest(p_deliveries) d on d.ordinal = f.ordinal
    where f.outcome = 'body_differs'
    on conflict do nothing
  ),
  body as (
    insert into public.webhook_bodies (id, body, received_at)
    select d.body_id, d.body, d.received_at
    from unnest(p_deliveries) d
    where d.body is not null
      and d.body_id in (select f.body_id from found f where f.outcome in ('recorded', 'skipped', 'quarantined'))
    on conflict do nothing
  )
  select f.ordinal, f.id, f.outcome, f.status, f.lane from found f order by f.ordinal;
end
$$;

-- Promise: each of the events is stored under its key, or was before; ordinal counts them from 1, outcome is one of
-- recorded, skipped (it is not for its endpoint: kept, without an effect), quarantined (p_quarantines says why jsonb cannot
-- hold it: kept as a dead letter with its bytes), duplicate, body_differs; status is that of the row now, lane that of its
-- handler. An event that another endpoint skipped as not its own is recorded here. p_bodies are base64. A payload that is null
-- is the body itself. Of a POST with several events the first carries the body and all its p_body_ids.
-- An event of an inline endpoint is due only when the server that received it must have died. Backfilled events (p_backfilled,
-- see 20260224100012_backfill.sql) and events from the inbox of DB1 (p_received_at says when they came) are due at once,
-- because no server waits for their effect.
-- Second call: duplicate for all. Locks: the keys of the new events, in the order of webhook.read_deliveries, so that two
-- batches with the same events, or the same signed bodies under other ids, do not deadlock. Ids and bodies that cross
-- each other still can (only a forger makes those), and a key that an open transaction is about to insert is waited for,
-- lock_timeout long: the caller halves the batch. A known event is never waited for, whatever another does with its row,
-- unless it is one to adopt (webhook.adopt_misfits).
create function webhook.record_events(
  p_webhook_ids uuid[],
  p_event_ids text[],
  p_event_types text[],
  p_occurred_at timestamptz[],
  p_payloads text[],
  p_bodies text[],
  p_body_ids uuid[],
  p_hashes text[],
  p_dedupe_hashes text[],
  p_signatures text[],
  p_quarantines text[],
  p_backfilled boolean default false,
  p_received_at timestamptz[] default null
)
returns table (ordinal int, id uuid, outcome text, status public.webhook_event_status, lane int)
language plpgsql security definer set search_path = ''
-- Of a body of 10 MB three lists hold copies for a moment: on disk they made up a third of the time it took (1.46 s, now 1.0).
set work_mem = '64MB' as $$
#variable_conflict use_column
declare
  v_deliveries webhook.delivery[] := webhook.read_deliveries(
    p_webhook_ids, p_event_ids, p_event_types, p_occurred_at, p_payloads, p_bodies, p_body_ids, p_hashes,
    p_dedupe_hashes, p_signatures, p_quarantines, p_backfilled, p_received_at
  );
  -- Asked first: an insert would wait for a known event whose row another session is changing, and delay the whole batch.
  v_known int[] := webhook.known_deliveries(v_deliveries);
begin
  perform public.answer_in_cell();
  -- Nearly always all are new, and a plain insert costs a third less than one that takes care of conflicts.
  if v_known = '{}' then
    begin
      insert into public.webhook_events
        (id, webhook_id, provider, event_id, event_type, occurred_at, payload, payload_hash, dedupe_hash, raw_body,
        body_id, signature, status, error, processed_at, next_attempt_at, arrival, lane, backfilled, received_at)
      select d.id, d.webhook_id, d.provider, d.event_id, d.event_type, d.occurred_at, d.payload, d.payload_hash,
        d.dedupe_hash, d.raw_body, d.body_id, d.signature, d.status, d.error,
        case d.status when 'skipped' then now() end, d.next_attempt_at, d.arrival, d.lane, d.backfilled, d.received_at
      from unnest(v_deliveries) d;
      insert into public.webhook_bodies (id, body, received_at)
      select d.body_id, d.body, d.received_at from unnest(v_deliveries) d where d.body_id is not null and d.body is not null;
      return query
      select d.ordinal, d.id, webhook.outcome_of(d.status), d.status, d.lane
      from unnest(v_deliveries) d
      order by d.ordinal;
      return;
    exception when unique_violation then
      null;
    end;
  end if;
  insert into public.webhook_events as e
    (id, webhook_id, provider, event_id, event_type, occurred_at, payload, payload_hash, dedupe_hash, raw_body,
    body_id, signature, status, error, processed_at, next_attempt_at, arrival, lane, backfilled, received_at)
  select d.id, d.webhook_id, d.provider, d.event_id, d.event_type, d.occurred_at, d.payload, d.payload_hash,
    d.dedupe_hash, d.raw_body, d.body_id, d.signature, d.status, d.error,
    case d.status when 'skipped' then now() end, d.next_attempt_at, d.arrival, d.lane, d.backfilled, d.received_at
  from unnest(v_deliveries) d
  where d.ordinal <> all (v_known)
  on conflict do nothing;
  perform webhook.adopt_misfits(v_deliveries);
  -- A statement of its own: it sees the events that others committed while the insert waited for them.
  return query select c.* from webhook.compare_deliveries(v_deliveries) c;
end
$$;
