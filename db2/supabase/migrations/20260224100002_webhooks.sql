-- WEBHOOKS: endpoints, events and what belongs to them. A provider delivers a signed event at least once; here
-- each is one row, and its effect is taken exactly once (20260224100004_webhook_processing.sql).
-- The tables stand in public, the functions in schema webhook; only service_role reaches either.

-- What `sluice migrate --adopt` has taken over is there already: the schemas, the status, webhook_events and audit_logs.
create schema if not exists webhook;
create schema if not exists audit;

-- pending → processing → success or skipped is the way of an event; failed is tried again, dead_letter waits for an
-- operator.
do $$
begin
  if pg_catalog.to_regtype('public.webhook_event_status') is null then
    create type public.webhook_event_status as enum (
      'pending', 'processing', 'success', 'skipped', 'failed', 'dead_letter'
    );
  end if;
end
$$;

-- The numbers of an endpoint.
create type webhook.limits as (
  max_attempts int,
  backoff_cap_sec int,
  lease_sec int,
  max_body_bytes int
);

-- Promise: the numbers of an endpoint that names none of its own, and of events whose endpoint is unknown. Immutable:
-- what asks for one of them has it in its plan. Second call: the same. Locks: none.
create function webhook.default_limits() returns webhook.limits
language sql immutable set search_path = '' as $$
  select (5, 60, 60, 1048576)::webhook.limits;
$$;

-- Promise: how large a body of this provider may be where the endpoint says nothing else: what the provider documents (WhatsApp
-- 3 MB), and a megabyte for the others. Second call: the same. Locks: none.
create function webhook.default_body_bytes(p_provider text) returns int
language sql immutable set search_path = '' as $$
  select case p_provider when 'whatsapp' then 3 * 1048576 else (webhook.default_limits()).max_body_bytes end;
$$;

-- Promise: what an endpoint of this provider and mode does with a delivery while DB2 is away, where it says nothing else. Twilio
-- gives up within 15 s, so its events are accepted into the inbox of DB1. Not in mode inline: there a handler may answer a call with
-- TwiML, and an empty answer would end the call, while a 503 sends Twilio to its fallback. Other providers deliver again for hours.
-- Second call: the same. Locks: none.
create function webhook.default_on_outage(p_provider text, p_mode text) returns text
language sql immutable set search_path = '' as $$
  select case when p_provider = 'twilio' and p_mode = 'queued' then 'accept' else 'refuse' end;
$$;

-- Whose events, payments and credits they are: the provider column of those tables holds a tenant. The first endpoint of
-- a provider has the tenant of the provider's own name, each later one '<provider>:<name>', unless it was made to share
-- one. A row stays when its endpoint is deleted, so that no later endpoint gets what was another's.
-- Of a tenant the part before the colon is its provider, everywhere: split_part(tenant, ':', 1), in TypeScript providerOf.
create table webhook.tenants (
  tenant text primary key,
  created_at timestamptz not null default now(),
  constraint tenant_begins_with_its_provider check (
    tenant ~ '^[a-z0-9][a-z0-9_-]{0,62}(:[a-z0-9][a-z0-9_-]{0,62})?$'
  )
);

-- The names of secrets that endpoints and call sites may use. Only the owner of the database writes it: a role that may add
-- an endpoint must not choose a variable whose value can be guessed, such as HOME. Values are never kept here.
create table webhook.secret_names (
  name text primary key,
  created_at timestamptz not null default now(),
  constraint secret_name_is_a_name check (name ~ '^[A-Z][A-Z0-9_]{0,99}$')
);

-- Those of `npm start`.
insert into webhook.secret_names (name) values
  ('STRIPE_WEBHOOK_SECRET'), ('TWILIO_AUTH_TOKEN'), ('WHATSAPP_APP_SECRET'), ('WHATSAPP_VERIFY_TOKEN'),
  ('DAILY_WEBHOOK_SECRET'), ('OPS_SITE_SECRET');

-- What the keys to the providers' own records are called unless an endpoint names another (api_key_name).
insert into webhook.secret_names (name) values ('STRIPE_API_KEY'), ('TWILIO_API_KEY');

-- Where a provider delivers to: POST /webhooks/<name>. Secrets are named here, never kept: their values are in Vault, or
-- in a file or the environment of the server that verifies.
-- livemode and accounts say which of the provider's events are for this endpoint (webhook.misfit). on_outage says what a delivery is
-- answered while this database is away: refuse, 503; accept, 2xx after it was committed to the inbox of DB1.
-- api_key_name names the key with which the provider is asked what it sent (20260224100012_backfill.sql); compared_at is when
-- the last hourly comparison with it began.
create table public.webhook_endpoints (
  webhook_id uuid primary key default gen_random_uuid(),
  name text not null,
  provider text not null,
  tenant text not null references webhook.tenants,
  livemode text not null default 'live',
  accounts text[] not null default '{}',
  mode text not null default 'queued',
  on_outage text not null,
  secret_names text[] not null,
  verify_token_name text,
  api_key_name text,
  public_url text,
  scheme jsonb,
  max_attempts int not null default (webhook.default_limits()).max_attempts,
  backoff_cap_sec int not null default (webhook.default_limits()).backoff_cap_sec,
  lease_sec int not null default (webhook.default_limits()).lease_sec,
  max_body_bytes int not null default (webhook.default_limits()).max_body_bytes,
  keep_payload_days int,
  is_active boolean not null default true,
  created_at timestamptz not null default now(),
  compared_at timestamptz,
  constraint one_endpoint_per_name unique (name),
  constraint name_is_a_path_segment check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  constraint provider_is_a_word check (provider ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  constraint tenant_is_of_the_provider check (split_part(tenant, ':', 1) = provider),
  constraint livemode_is_known check (livemode in ('live', 'test', 'both')),
  constraint accounts_are_ids check (
    array_position(accounts, null) is null and cardinality(accounts) <= 100
    and array_to_string(accounts, ',') ~ '^([A-Za-z0-9_/-]{1,100}(,[A-Za-z0-9_/-]{1,100})*)?$'
  ),
  constraint mode_is_known check (mode in ('inline', 'queued')),
  constraint on_outage_is_known check (on_outage in ('refuse', 'accept')),
  constraint one_to_five_secrets check (cardinality(secret_names) between 1 and 5),
  -- Also keeps values out: what providers hand out as secrets has other characters or is too long for a name.
  constraint secrets_are_names check (
    array_position(secret_names, null) is null
    and array_to_string(secret_names, ',') ~ '^[A-Z][A-Z0-9_]{0,99}(,[A-Z][A-Z0-9_]{0,99})*$'
  ),
  constraint verify_token_is_a_name check (verify_token_name ~ '^[A-Z][A-Z0-9_]{0,99}$'),
  constraint api_key_is_a_name check (api_key_name ~ '^[A-Z][A-Z0-9_]{0,99}$'),
  constraint public_url_is_http check (public_url ~ '^https?://' and length(public_url) <= 2000),
  constraint only_hmac_has_a_scheme check ((provider = 'hmac') = (scheme is not null)),
  constraint scheme_is_an_object check (jsonb_typeof(scheme) = 'object'),
  constraint max_attempts_in_range check (max_attempts between 1 and 100),
  constraint backoff_cap_in_range check (backoff_cap_sec between 1 and 86400),
  constraint lease_in_range check (lease_sec between 1 and 3600),
  constraint max_body_in_range check (max_body_bytes between 1 and 10485760),
  constraint keep_payload_days_in_range check (keep_payload_days between 1 and 36500)
);

create index webhook_endpoints_by_tenant on public.webhook_endpoints (tenant);

-- Promise: a new endpoint without a tenant gets its own: that of the provider's name where no endpoint ever had it, else
-- '<provider>:<name>'. 'hmac' and 'standard' are ways to sign, used by senders that know nothing of each other: their bare
-- names are never given. A tenant that is named is shared, and has to exist. Raises SL001 where the own tenant was that of
-- a deleted endpoint. One that does not say on_outage gets the default. Second call: the endpoint's name is taken. Locks: the key
-- of the tenant, so that of two first endpoints one waits for the other.
create function webhook.give_tenant() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.on_outage := coalesce(new.on_outage, webhook.default_on_outage(new.provider, new.mode));
  -- One of the same name: the insert meets its key, and "on conflict do nothing" must not have made a tenant.
  new.tenant := coalesce(new.tenant, (select e.tenant from public.webhook_endpoints e where e.name = new.name));
  if new.tenant is null and new.provider not in ('hmac', 'standard') then
    insert into webhook.tenants (tenant) values (new.provider) on conflict do nothing returning tenant into new.tenant;
  end if;
  if new.tenant is null then
    insert into webhook.tenants (tenant) values (new.provider || ':' || new.name) on conflict do nothing
    returning tenant into new.tenant;
  end if;
  if new.tenant is null then
    raise exception 'the tenant %:% was that of an earlier endpoint', new.provider, new.name
      using errcode = 'SL001', hint = 'choose another name, or say that the endpoint shares this tenant';
  end if;
  return new;
end
$$;

create trigger endpoints_have_tenants before insert on public.webhook_endpoints
  for each row execute function webhook.give_tenant();

-- Promise: always raises. Second call: the same. Locks: none.
create function webhook.refuse_tenant_change() returns trigger
language plpgsql set search_path = '' as $$
begin
  raise exception 'the tenant of an endpoint is fixed when it is made'
    using errcode = 'restrict_violation', hint = 'add another endpoint';
end
$$;

create trigger tenant_is_fixed
  before update on public.webhook_endpoints
  for each row when ((old.tenant, old.provider) is distinct from (new.tenant, new.provider))
  execute function webhook.refuse_tenant_change();

-- Promise: why an event of this content is not for the endpoint; null where it is. Only Stripe says what can be judged:
-- livemode (true or false), and account (context in a thin event), which names another account than the endpoint's own:
-- one that is connected to it, by its owner's choice and not by ours. What an event does not say is not held against it.
-- Second call: the same. Locks: none.
create function webhook.misfit(p_endpoint public.webhook_endpoints, p_payload jsonb) returns text
language plpgsql immutable set search_path = '' as $$
declare
  v_account text := coalesce(p_payload ->> 'account', p_payload ->> 'context');
begin
  if p_endpoint.provider is distinct from 'stripe' then
    return null;
  elsif p_endpoint.livemode <> 'both' and p_payload ? 'livemode'
    and (p_payload -> 'livemode' = 'true') <> (p_endpoint.livemode = 'live') then
    return case p_endpoint.livemode when 'live' then 'test event: the endpoint takes live ones'
      else 'live event: the endpoint takes test ones' end;
  elsif v_account <> all (p_endpoint.accounts) then
    return 'account ' || left(v_account, 100) || ' is not one of the endpoint''s';
  end if;
  return null;
end
$$;

-- The order in which events came in, also within one batch, which is stored in another order.
create sequence webhook.arrival_seq cache 1;

-- One notice of a provider. The keys stay for ever (a sender may resend after months), payload and raw body may be
-- pruned. The id begins with the time (UUID version 7), so that neighbours in time are neighbours in its index.
-- webhook_id has no foreign key: the check would take a lock on the endpoint's row for each event, one hot row for all.
-- next_attempt_at is when a worker may take it: of a processing event the end of its lease, of an ended one null.
-- lease_token names the worker that has it; a worker that finishes it with another token changes nothing.
-- skipped_by is the operator who skipped it; null where a handler did.
-- waiting_since is when it was first told to come later (webhook.mark_events), null when it was not.
-- backfilled: we asked the provider for it, because it was not delivered. Its bytes are not those that a delivery would have.
-- attempts counts tries that have ended. lane is that of its handler: workers take lane by lane.
create table if not exists public.webhook_events (
  id uuid primary key default (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
  webhook_id uuid not null,
  provider text not null default 'unknown',
  event_id text not null,
  event_type text not null default 'unknown',
  occurred_at timestamptz,
  received_at timestamptz not null default now(),
  processed_at timestamptz,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz default now(),
  status public.webhook_event_status not null default 'pending',
  lane int not null,
  attempts int not null default 0,
  takeovers int not null default 0,
  error text,
  signature text,
  payload jsonb,
  payload_hash text,
  dedupe_hash text,
  raw_body bytea,
  body_id uuid,
  lease_token uuid,
  lease_until timestamptz,
  idempotency_key text,
  skipped_by text,
  waiting_since timestamptz,
  arrival bigint not null default nextval('webhook.arrival_seq'),
  backfilled boolean not null default false,
  constraint one_event_per_provider_and_id unique (provider, event_id),
  constraint webhook_unique_event unique (webhook_id, event_id),
  constraint event_id_has_1_to_500_characters check (length(event_id) between 1 and 500),
  constraint event_type_has_1_to_200_characters check (length(event_type) between 1 and 200)
) with (
  -- Both indexed columns change with every step, so no update can stay on its page's line pointers (HOT); room on the
  -- page only keeps the versions of one event together.
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

-- Events that were taken over have come before all others.
alter table public.webhook_events alter arrival set default nextval('webhook.arrival_seq');
select setval('webhook.arrival_seq', max(e.arrival)) from public.webhook_events e having max(e.arrival) is not null;

-- For providers that sign the body and not the id: the same body under another id is the same event.
create unique index one_event_per_signed_body
  on public.webhook_events (provider, dedupe_hash)
  where dedupe_hash is not null;

-- All that a worker looks at, lane by lane in the order it is taken. An event that has ended leaves it.
create index webhook_events_due
  on public.webhook_events (lane, next_attempt_at, arrival)
  where status in ('pending', 'failed', 'processing');

-- What operators look for. Without the healthy ones, who would pay for it with each step.
create index if not exists idx_webhook_events_webhook_status
  on public.webhook_events (webhook_id, status)
  where status in ('failed', 'dead_letter');

create index webhook_events_by_body on public.webhook_events (body_id) where body_id is not null;

-- What can be pruned, oldest first. One that was quarantined has a body and no payload.
create index webhook_events_with_payload
  on public.webhook_events (webhook_id, received_at)
  where status in ('success', 'skipped') and (payload is not null or raw_body is not null or body_id is not null);

-- The raw body of a delivery that held more than one event: webhook_events.body_id points here. One that held a single
-- event keeps it in raw_body.
create table public.webhook_bodies (
  id uuid primary key,
  body bytea not null,
  received_at timestamptz not null default now()
);

-- A known id with another body: an error of the provider, or a forgery. The event stays as it is. Unique, so that the
-- same forgery sent again and again does not fill the disk.
create table public.webhook_alarms (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  webhook_id uuid not null, provider text not null, event_id text not null,
  kind text not null default 'body_differs',
  stored_hash text,
  received_hash text,
  body bytea,
  signature text,
  constraint kind_is_known check (kind in ('body_differs')),
  constraint one_alarm_per_body unique (provider, event_id, received_hash)
);

-- Which handler takes the effect of which events: event_type is a type, or a prefix that ends in *. The most specific
-- row wins: endpoint before provider, exact before prefix, longer prefix before shorter.
-- Workers take the handler's events by its lane; events without a handler are in lane 0. A number made from the name needs no
-- lookup, and keeps the index of due events small. Two handlers with the same number only take turns: this table always
-- decides which handler an event has.
create table public.webhook_handlers (
  provider text not null,
  event_type text not null,
  webhook_id uuid,
  kind text not null,
  name text not null,
  lane int generated always as (pg_catalog.hashtext(kind || ' ' || name)) stored,
  constraint one_handler_per_type unique nulls not distinct (provider, event_type, webhook_id),
  constraint handler_kind_is_known check (kind in ('sql', 'typescript')),
  constraint star_only_at_the_end check (position('*' in event_type) in (0, length(event_type))),
  constraint handler_names_its_type check (length(event_type) between 1 and 200),
  constraint handler_has_a_name check (length(name) between 1 and 200)
);

-- Promise: the handler of each kind of event in the arrays and its lane; a kind that has none is left out. In plpgsql,
-- which keeps its plan. Second call: the same. Locks: none.
create function webhook.find_handlers(p_webhook_ids uuid[], p_providers text[], p_event_types text[])
returns table (webhook_id uuid, provider text, event_type text, kind text, name text, lane int)
language plpgsql stable set search_path = '' set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  select distinct on (k.webhook_id, k.provider, k.event_type) k.webhook_id, k.provider, k.event_type, h.kind, h.name,
    h.lane
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
end
$$;

-- Promise: the lane of an event's handler as of now. Second call: the same. Locks: none.
create function webhook.lane_for(p_webhook_id uuid, p_provider text, p_event_type text) returns int
language sql stable set search_path = '' as $$
  select coalesce(max(h.lane), 0) from webhook.find_handlers(array[p_webhook_id], array[p_provider], array[p_event_type]) h;
$$;

-- Promise: an event that was inserted without a lane (by hand; record_events gives one) has that of its handler.
-- Second call: the same. Locks: none.
create function webhook.give_lane() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.lane := webhook.lane_for(new.webhook_id, new.provider, new.event_type);
  return new;
end
$$;

create trigger events_have_lanes
  before insert on public.webhook_events
  for each row when (new.lane is null) execute function webhook.give_lane();

-- Promise: an event that a plain update has put back to pending, as the requirement's replay and its worker do, goes
-- round as if webhook.replay_events had sent it: it is due at once, in the lane of its handler, and the lease of a worker that
-- had it has ended. An update that says when it is due has its way. Second call: the same. Locks: the event, held already.
create function webhook.go_round() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.next_attempt_at := clock_timestamp();
  new.lane := webhook.lane_for(new.webhook_id, new.provider, new.event_type);
  new.lease_token := null;
  new.lease_until := null;
  new.takeovers := 0;
  new.waiting_since := null;
  new.processed_at := null;
  new.skipped_by := null;
  return new;
end
$$;

create trigger events_put_back_are_due
  before update of status on public.webhook_events
  for each row when (
    new.status = 'pending' and old.status <> 'pending' and new.next_attempt_at is not distinct from old.next_attempt_at
  )
  execute function webhook.go_round();

-- Promise: after a change of handlers, every event that has not ended is in the lane of the handler it has now. An
-- event that another transaction has locked keeps its lane: the worker that takes it sees its handler, and gives it the
-- right lane when it goes round again (webhook.mark_events). Second call: changes nothing. Locks: the moved events;
-- locked ones are skipped.
create function webhook.sort_events() returns trigger
language plpgsql set search_path = '' as $$
begin
  if not exists (select from changed) then
    return null;
  end if;
  with kinds as materialized (
    select distinct e.webhook_id, e.provider, e.event_type, e.lane
    from public.webhook_events e
    where e.status in ('pending', 'failed', 'processing')
  ),
  wrong as materialized (
    select k.*, coalesce(h.lane, 0) as right_lane
    from kinds k
    left join webhook.find_handlers(
      array(select webhook_id from kinds), array(select provider from kinds), array(select event_type from kinds)
    ) h on h.webhook_id = k.webhook_id and h.provider = k.provider and h.event_type = k.event_type
    where k.lane <> coalesce(h.lane, 0)
  ),
  moved as materialized (
    select e.id, w.right_lane
    from wrong w
    join public.webhook_events e on e.webhook_id = w.webhook_id and e.provider = w.provider
      and e.event_type = w.event_type and e.lane = w.lane
    where e.status in ('pending', 'failed', 'processing')
    for update of e skip locked
  )
  update public.webhook_events e set lane = m.right_lane from moved m where e.id = m.id;
  return null;
end
$$;

create trigger added_handlers_sort_events
  after insert on public.webhook_handlers
  referencing new table as changed for each statement execute function webhook.sort_events();
create trigger changed_handlers_sort_events
  after update on public.webhook_handlers
  referencing new table as changed for each statement execute function webhook.sort_events();
create trigger removed_handlers_sort_events
  after delete on public.webhook_handlers
  referencing old table as changed for each statement execute function webhook.sort_events();

-- Every operator action, in the same transaction as the action. Insert only. actor is for whom the caller says it acts;
-- written_by is what the database itself saw (audit.writer). changed: what the transaction changed of the rules
-- (audit.tell_changes).
create table if not exists audit.audit_logs (
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

-- Promise: whether this is the name that stands for an erased user (20260224100017_personal_data.sql). Second call: the same. Locks: none.
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

-- Promise: the endpoint of that name, or no row. Second call: the same. Locks: none.
-- Definer, as all functions of this schema that service_role may call: the tables take no writes from it, and rights
-- in one place (the last migration) are easier to check than in two.
create function webhook.find_endpoint(p_name text) returns setof public.webhook_endpoints
language sql stable security definer set search_path = '' as $$
  select public.answer_in_cell();
  select e.* from public.webhook_endpoints e where e.name = p_name;
$$;

-- Promise: all endpoints by name. Second call: the same. Locks: none.
create function webhook.list_endpoints() returns setof public.webhook_endpoints
language sql stable security definer set search_path = '' as $$
  select e.* from public.webhook_endpoints e order by e.name;
$$;

-- Promise: what p_changes (column → value) makes of an endpoint; nothing is stored. Only what is not the endpoint's
-- identity can be given; another key, or a value of another type, raises SL001. Second call: the same. Locks: none.
create function webhook.changed_endpoint(p_endpoint public.webhook_endpoints, p_changes jsonb)
returns public.webhook_endpoints
language plpgsql set search_path = '' as $$
declare
  c_changeable constant text[] := '{mode,on_outage,secret_names,verify_token_name,api_key_name,livemode,accounts,public_url,'
    'scheme,max_attempts,backoff_cap_sec,lease_sec,max_body_bytes,keep_payload_days,is_active}';
  v_unknown text;
begin
  if jsonb_typeof(p_changes) is distinct from 'object' then
    raise exception 'the settings of an endpoint are a JSON object' using errcode = 'SL001';
  end if;
  select string_agg(k, ', ' order by k) into v_unknown from jsonb_object_keys(p_changes) k where k <> all (c_changeable);
  if v_unknown is not null then
    raise exception 'an endpoint has no setting %', v_unknown
      using errcode = 'SL001', hint = 'known are ' || array_to_string(c_changeable, ', ');
  end if;
  return jsonb_populate_record(p_endpoint, p_changes);
exception
  when invalid_text_representation or numeric_value_out_of_range or invalid_parameter_value then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the list of secret names, by name. Second call: the same. Locks: none.
create function webhook.list_secret_names() returns setof webhook.secret_names
language sql stable security definer set search_path = '' as $$
  select n.* from webhook.secret_names n order by n.name;
$$;

-- Promise: endpoints and call sites may use secrets of this name from now on, with an audit row; true where that is new.
-- Second call: false, no audit row. Locks: the name. For the owner only, as the next: no role is granted either.
create function webhook.allow_secret(p_name text, p_actor text, p_reason text default null) returns boolean
language plpgsql set search_path = '' as $$
begin
  insert into webhook.secret_names (name) values (p_name) on conflict do nothing;
  if not found then
    return false;
  end if;
  insert into audit.audit_logs (actor, action, subject, reason)
  values (p_actor, 'secret_name_allow', 'secret name ' || p_name, p_reason);
  return true;
end
$$;

-- Promise: within a second (a minute where DB2 is slow) servers use no secret of this name any more, whichever endpoint names
-- it; with an audit row; true where it was on the list. Second call: false, no audit row. Locks: the name.
create function webhook.remove_secret(p_name text, p_actor text, p_reason text default null) returns boolean
language plpgsql set search_path = '' as $$
begin
  delete from webhook.secret_names n where n.name = p_name;
  if found then
    insert into audit.audit_logs (actor, action, subject, reason)
    values (p_actor, 'secret_name_remove', 'secret name ' || p_name, p_reason);
    return true;
  end if;
  return false;
end
$$;

-- Promise: nothing if all the names are on the list; else raises SL001. Text that is not a name may be a secret: the error
-- does not repeat it, and the table refuses it. Second call: the same. Locks: none.
create function webhook.require_allowed(p_names text[]) returns void
language plpgsql stable set search_path = '' as $$
declare
  v_name text := (
    select n from unnest(p_names) n
    where n ~ '^[A-Z][A-Z0-9_]{0,99}$' and not exists (select from webhook.secret_names s where s.name = n)
    limit 1
  );
begin
  if v_name is not null then
    raise exception 'the name % is not on the list of secrets', v_name
      using errcode = 'SL001', hint = 'the owner of the database allows it: sluice webhooks secrets allow ' || v_name;
  end if;
end
$$;

-- Promise: whether the name is on the list, and if so the value that Supabase's Vault has for it; null if the Vault has none,
-- or the database has no Vault. Second call: the same. Locks: none. Definer: through this function service_role reads of the
-- Vault only what is on the list.
create function webhook.find_secret(p_name text) returns table (is_allowed boolean, value text)
language plpgsql stable security definer set search_path = '' as $$
begin
  is_allowed := exists (select from webhook.secret_names n where n.name = p_name);
  if is_allowed and pg_catalog.to_regclass('vault.decrypted_secrets') is not null then
    select s.decrypted_secret into value from vault.decrypted_secrets s where s.name = p_name;
  end if;
  return next;
end
$$;

-- Promise: a new endpoint with these settings (any column but its identity), and an audit row. p_tenant is one that exists,
-- to share it; without it the endpoint has its own (webhook.give_tenant). Raises SL032 when the name is taken, SL001 when a
-- setting is not allowed. Second call: SL032. Locks: the tenant, then the new name.
create function webhook.add_endpoint(
  p_name text,
  p_provider text,
  p_secret_names text[],
  p_mode text default 'queued',
  p_settings jsonb default '{}',
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
)
returns uuid
language plpgsql security definer set search_path = '' as $$
declare
  v_new public.webhook_endpoints := jsonb_populate_record(null::public.webhook_endpoints,
    to_jsonb(webhook.default_limits()) || jsonb_build_object('webhook_id', gen_random_uuid(), 'name', p_name,
      'provider', p_provider, 'tenant', p_tenant, 'livemode', 'live', 'accounts', '[]'::jsonb, 'is_active', true,
      'created_at', now(), 'max_body_bytes', webhook.default_body_bytes(p_provider)));
begin
  v_new := webhook.changed_endpoint(v_new, coalesce(p_settings, '{}')
    || jsonb_build_object('secret_names', p_secret_names, 'mode', coalesce(p_mode, 'queued')));
  perform webhook.require_allowed(v_new.secret_names || v_new.verify_token_name || v_new.api_key_name);
  insert into public.webhook_endpoints as e select v_new.* returning e.* into v_new;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'webhook_endpoint_add', 'webhook endpoint ' || p_name, p_reason, to_jsonb(v_new));
  return v_new.webhook_id;
exception
  when unique_violation then
    raise exception 'there is an endpoint % already', p_name using errcode = 'SL032';
  when foreign_key_violation then
    raise exception 'the tenant % does not exist, so it cannot be shared', p_tenant using errcode = 'SL001';
  when check_violation or not_null_violation then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the endpoint with p_changes made (disable: {"is_active": false}; rotate: webhook.rotate_endpoint), and an
-- audit row with what it was before. An endpoint whose on_outage is the default of its mode has, in another mode, that one's
-- default. Raises SL031 when there is none of that name, SL001 when a change is not allowed.
-- Second call: the same endpoint, another audit row. Locks: the endpoint.
create function webhook.change_endpoint(p_name text, p_changes jsonb, p_actor text, p_reason text default null)
returns setof public.webhook_endpoints
language plpgsql security definer set search_path = '' as $$
declare
  v_old public.webhook_endpoints := (select e from public.webhook_endpoints e where e.name = p_name for update);
  v_new public.webhook_endpoints;
begin
  if v_old.name is null then
    raise exception 'no endpoint is called %', p_name using errcode = 'SL031';
  end if;
  v_new := webhook.changed_endpoint(v_old, p_changes);
  if (v_new.secret_names, v_new.verify_token_name, v_new.api_key_name)
    is distinct from (v_old.secret_names, v_old.verify_token_name, v_old.api_key_name) then
    perform webhook.require_allowed(v_new.secret_names || v_new.verify_token_name || v_new.api_key_name);
  end if;
  if not p_changes ? 'on_outage' and v_old.on_outage = webhook.default_on_outage(v_old.provider, v_old.mode) then
    v_new.on_outage := webhook.default_on_outage(v_new.provider, v_new.mode);
  end if;
  update public.webhook_endpoints e
  set mode = v_new.mode, on_outage = v_new.on_outage, secret_names = v_new.secret_names,
    verify_token_name = v_new.verify_token_name, api_key_name = v_new.api_key_name, livemode = v_new.livemode,
    accounts = v_new.accounts, public_url = v_new.public_url, scheme = v_new.scheme, max_attempts = v_new.max_attempts,
    backoff_cap_sec = v_new.backoff_cap_sec, lease_sec = v_new.lease_sec, max_body_bytes = v_new.max_body_bytes,
    keep_payload_days = v_new.keep_payload_days, is_active = v_new.is_active
  where e.webhook_id = v_old.webhook_id;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'webhook_endpoint_change', 'webhook endpoint ' || p_name, p_reason,
    jsonb_build_object('changes', p_changes, 'before', to_jsonb(v_old)));
  return next v_new;
exception
  when check_violation or not_null_violation then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the names of secrets after a rotation: p_given first, each once. Those of before stay good, as far as there is room for
-- five, because a sender changes later than we do; with p_only none of them does. Second call: the same. Locks: none.
create function webhook.rotated(p_given text[], p_known text[], p_only boolean) returns text[]
language sql immutable set search_path = '' as $$
  select coalesce(array_agg(r.name order by r.place), '{}')
  from (
    select n.name, min(n.place) as place
    from unnest(p_given || case when p_only then '{}' else p_known end) with ordinality n (name, place)
    group by n.name order by 2 limit greatest(5, cardinality(p_given))
  ) r;
$$;

-- Promise: the endpoint with p_secret_names in front of its own (webhook.rotated), as change_endpoint answers and writes it down. Two
-- rotations at once both count: the second waits, and keeps what the first put there. Raises what change_endpoint raises.
-- Second call: the same names, another audit row. Locks: the endpoint.
create function webhook.rotate_endpoint(
  p_name text, p_secret_names text[], p_only boolean, p_actor text, p_reason text default null
)
returns setof public.webhook_endpoints
language plpgsql security definer set search_path = '' as $$
declare
  v_known text[] := (select e.secret_names from public.webhook_endpoints e where e.name = p_name for update);
begin
  return query
  select * from webhook.change_endpoint(p_name,
    jsonb_build_object('secret_names', webhook.rotated(p_secret_names, v_known, p_only)), p_actor, p_reason);
end
$$;
