-- CALLS: signed call events, each recorded once whatever the replay cache did and however many servers run. The cache saves
-- work; calls_site_signature_hash_uq decides.

-- What is not a table lives here: only service_role calls it.
create schema calls;

-- Promise: an id that begins with the time (UUID version 7). Second call: another one. Locks: none.
create function calls.new_id() returns uuid
language sql volatile set search_path = '' as $$
  select (
    lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '-7' || substr(gen_random_uuid()::text, 16)
  )::uuid;
$$;

-- Who may send call events. Secrets by NAME, of webhook.secret_names, newest first; never values.
create table public.call_sites (
  site_id text primary key,
  secret_names text[] not null default '{}',
  -- Where false, a request without a signature is taken too, and nothing recognises its second delivery.
  require_signature boolean not null default true,
  -- The kinds this site may send; null is any.
  kinds text[],
  is_active boolean not null default true,
  -- As of webhook_endpoints.
  on_outage text not null default 'refuse',
  created_at timestamptz not null default now(),
  constraint on_outage_is_known check (on_outage in ('refuse', 'accept')),
  -- No dot: it separates the site from the timestamp in what is signed.
  constraint site_id_fits_a_header check (site_id ~ '^[A-Za-z0-9_:@-]{1,200}$'),
  constraint at_most_five_secrets check (cardinality(secret_names) <= 5),
  -- As of webhook_endpoints; a site that need not sign may have none.
  constraint secrets_are_names check (
    array_position(secret_names, null) is null
    and array_to_string(secret_names, ',') ~ '^([A-Z][A-Z0-9_]{0,99}(,[A-Z][A-Z0-9_]{0,99})*)?$'
  ),
  constraint signing_needs_a_secret check (not require_signature or cardinality(secret_names) > 0),
  constraint some_kind_is_known check (cardinality(kinds) > 0)
);

-- One row a call event. No foreign key to the site: its check would lock one hot row for every event, and sites are
-- disabled, never deleted. The id is time-ordered, so that the index grows at one end.
create table if not exists public.calls (
  id uuid primary key default calls.new_id(),
  site_id text not null,
  event_id text,
  kind text not null default 'unknown',
  -- Null where it was pruned (20260224100018_retention.sql).
  payload jsonb default '{}',
  occurred_at timestamptz not null default now(),
  received_at timestamptz not null default now(),
  -- sha256 of the x-ops-signature header, as hex; null where the request was not signed.
  signature_hash text
);

-- Where it was taken over (`sluice migrate --adopt`).
alter table public.calls alter id set default calls.new_id(), alter payload drop not null;

-- The last guard: a signature is recorded once a site. Rows without one are not in it.
create unique index if not exists calls_site_signature_hash_uq
  on public.calls (site_id, signature_hash)
  where signature_hash is not null;

-- A sender that signs its retry anew, with a new timestamp, is recognised by the event's own id. Only for signed calls:
-- without a signature any caller could use up an id that another sender is about to use.
create unique index calls_site_event_id_uq
  on public.calls (site_id, event_id)
  where event_id is not null and signature_hash is not null;

alter table public.call_sites enable row level security;
alter table public.calls enable row level security;

-- Promise: the site of this id, or no row. Second call: the same. Locks: none.
create function calls.find_site(p_site_id text) returns setof public.call_sites
language sql stable set search_path = '' as $$
  select public.answer_in_cell();
  select s.* from public.call_sites s where s.site_id = p_site_id;
$$;

-- Promise: the sites after p_after in the order of their ids. Second call: the same. Locks: none.
create function calls.list_sites(p_after text default '', p_limit int default 100) returns setof public.call_sites
language sql stable set search_path = '' as $$
  select s.* from public.call_sites s where s.site_id > p_after order by s.site_id limit p_limit;
$$;

-- Promise: each call is in the table, or what stands in its way: recorded, duplicate (its signature, or its event id with
-- the same content, is there already; id is that row's), event_conflict (its event id is there with another content: nothing
-- is written). A call without a signature is always recorded. ordinal counts the calls from 1. p_ids, where a call has one, is the
-- id of its row: a call without a signature that is told twice under one id is one row. p_received_at says when calls came that
-- waited in the inbox of DB1.
-- Second call: duplicate. Locks: keys in the order of event id and signature, so that two batches do not deadlock; equal
-- signatures have equal event ids, because both come from the same signed bytes.
-- Definer: service_role reads the table and writes only through here.
create function calls.record_calls(
  p_site_ids text[],
  p_event_ids text[],
  p_kinds text[],
  p_payloads text[],
  p_occurred_at timestamptz[],
  p_signature_hashes text[],
  p_ids uuid[] default null,
  p_received_at timestamptz[] default null
)
returns table (ordinal int, id uuid, outcome text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_ids uuid[] := array(select coalesce(p_ids[i], calls.new_id()) from generate_series(1, cardinality(p_site_ids)) i);
begin
  -- Nearly always nothing stands in the way, and a plain insert costs less than one that looks first.
  begin
    insert into public.calls (id, site_id, event_id, kind, payload, occurred_at, signature_hash, received_at)
    select i.id, i.site_id, i.event_id, i.kind, i.payload::jsonb, i.occurred_at, i.signature_hash, coalesce(i.received_at, now())
    from unnest(v_ids, p_site_ids, p_event_ids, p_kinds, p_payloads, p_occurred_at, p_signature_hashes, p_received_at)
      as i (id, site_id, event_id, kind, payload, occurred_at, signature_hash, received_at)
    order by i.site_id, i.event_id, i.signature_hash;
    return query
    select i.ordinal::int, i.id, 'recorded' from unnest(v_ids) with ordinality as i (id, ordinal);
    return;
  exception when unique_violation then
    null;
  end;
  insert into public.calls (id, site_id, event_id, kind, payload, occurred_at, signature_hash, received_at)
  select i.id, i.site_id, i.event_id, i.kind, i.payload::jsonb, i.occurred_at, i.signature_hash, coalesce(i.received_at, now())
  from unnest(v_ids, p_site_ids, p_event_ids, p_kinds, p_payloads, p_occurred_at, p_signature_hashes, p_received_at)
    as i (id, site_id, event_id, kind, payload, occurred_at, signature_hash, received_at)
  order by i.site_id, i.event_id, i.signature_hash
  on conflict do nothing;
  -- A statement of its own: it sees the rows that others committed while the insert waited for them.
  return query
  select i.ordinal::int, coalesce(own.id, signed.id, named.id),
    case
      when own.id is not null then 'recorded'
      when signed.id is not null then 'duplicate'
      -- A pruned payload cannot be compared: it counts as equal.
      when (named.kind, coalesce(named.payload, i.payload::jsonb), named.occurred_at) = (i.kind, i.payload::jsonb, i.occurred_at)
        then 'duplicate'
      else 'event_conflict'
    end
  from unnest(v_ids, p_site_ids, p_event_ids, p_kinds, p_payloads, p_occurred_at, p_signature_hashes)
    with ordinality as i (id, site_id, event_id, kind, payload, occurred_at, signature_hash, ordinal)
  -- One look each by a key, however large the table has grown since the plan was made.
  left join lateral (select c.id from public.calls c where c.id = i.id limit 1) own on true
  left join lateral (
    select c.id from public.calls c
    where c.site_id = i.site_id and c.signature_hash = i.signature_hash limit 1
  ) signed on true
  left join lateral (
    select c.* from public.calls c
    where c.site_id = i.site_id and c.event_id = i.event_id and c.signature_hash is not null
      and i.signature_hash is not null limit 1
  ) named on true;
end
$$;

-- Promise: the site is there and true, with an audit row in the same transaction; false, and nothing changes, where the
-- id is taken. A site that breaks a rule of the table raises that rule, a secret that is not on the list
-- (webhook.secret_names) SL001. Second call: false. Locks: the site.
-- Definer, as the next: service_role reads the tables and writes only through here.
create function calls.add_site(
  p_site_id text,
  p_secret_names text[],
  p_require_signature boolean,
  p_kinds text[],
  p_actor text,
  p_reason text default null,
  p_on_outage text default 'refuse'
)
returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  perform webhook.require_allowed(p_secret_names);
  insert into public.call_sites (site_id, secret_names, require_signature, kinds, on_outage)
  values (p_site_id, p_secret_names, p_require_signature, p_kinds, p_on_outage)
  on conflict (site_id) do nothing;
  if not found then
    return false;
  end if;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'call_site_add', 'call site ' || p_site_id, p_reason, jsonb_build_object(
    'secret_names', p_secret_names, 'require_signature', p_require_signature, 'kinds', p_kinds, 'on_outage', p_on_outage
  ));
  return true;
end
$$;

-- Promise: the site with what p_changes names: secret_names, require_signature, kinds, is_active, on_outage; no row where the site
-- is unknown. An audit row in the same transaction keeps what was before. Raises SL001 for any other name, and
-- for a secret that is not on the list.
-- Second call: the same site, and another audit row. Locks: the site.
create function calls.change_site(p_site_id text, p_changes jsonb, p_actor text, p_reason text default null)
returns setof public.call_sites
language plpgsql security definer set search_path = '' as $$
declare
  v_before public.call_sites := (select s from public.call_sites s where s.site_id = p_site_id for update);
  v_after public.call_sites;
begin
  if p_changes - array['secret_names', 'require_signature', 'kinds', 'is_active', 'on_outage'] <> '{}' then
    raise exception 'a site has secret_names, require_signature, kinds, is_active and on_outage' using errcode = 'SL001';
  end if;
  if v_before.site_id is null then
    return;
  end if;
  v_after := jsonb_populate_record(v_before, p_changes);
  if v_after.secret_names is distinct from v_before.secret_names then
    perform webhook.require_allowed(v_after.secret_names);
  end if;
  update public.call_sites s
  set secret_names = v_after.secret_names, require_signature = v_after.require_signature,
    kinds = v_after.kinds, is_active = v_after.is_active, on_outage = v_after.on_outage
  where s.site_id = p_site_id;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'call_site_change', 'call site ' || p_site_id, p_reason, jsonb_build_object(
    'changes', p_changes, 'before', to_jsonb(v_before)
  ));
  return next v_after;
end
$$;

-- Promise: the site with p_secret_names in front of its own (webhook.rotated), as change_site answers and writes it down. Two rotations
-- at once both count, as of webhook.rotate_endpoint. Second call: the same names, another audit row. Locks: the site.
create function calls.rotate_site(
  p_site_id text, p_secret_names text[], p_only boolean, p_actor text, p_reason text default null
)
returns setof public.call_sites
language plpgsql security definer set search_path = '' as $$
declare
  v_known text[] := (select s.secret_names from public.call_sites s where s.site_id = p_site_id for update);
begin
  return query
  select * from calls.change_site(p_site_id,
    jsonb_build_object('secret_names', webhook.rotated(p_secret_names, v_known, p_only)), p_actor, p_reason);
end
$$;

-- Promise: calls, newest first, filtered by what is not null, without their payloads. Page on with p_before = the last id.
-- Second call: the same. Locks: none.
create function calls.list_calls(
  p_site_id text default null,
  p_event_id text default null,
  p_kind text default null,
  p_before uuid default null,
  p_limit int default 100,
  p_offset int default 0
)
returns table (
  id uuid, site_id text, event_id text, kind text, occurred_at timestamptz, received_at timestamptz, is_signed boolean
)
language plpgsql stable set search_path = ''
-- As of public.tickets_page: a plan for what is given.
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select c.id, c.site_id, c.event_id, c.kind, c.occurred_at, c.received_at, c.signature_hash is not null
  from public.calls c
  where (p_site_id is null or c.site_id = p_site_id)
    and (p_event_id is null or c.event_id = p_event_id)
    and (p_kind is null or c.kind = p_kind)
    and (p_before is null or c.id < p_before)
  order by c.id desc
  limit p_limit offset p_offset;
end
$$;

-- Promise: everything about one call, or no row. Second call: the same. Locks: none.
create function calls.show_call(p_id uuid) returns setof public.calls
language sql stable set search_path = '' as $$
  select c.* from public.calls c where c.id = p_id;
$$;

-- Promise: every endpoint and call site, and the names of secrets that they may use, as {kind: {name: door}}, and the moment of this
-- look: what DB1 keeps a copy of (copy_doors), so that a door can verify while this database is away. in_vault of a secret says
-- whether Vault has one of that name; its value is not looked at. Second call: the same, and what has changed. Locks: none.
-- Definer, as the functions of schema webhook.
create function webhook.doors() returns table (read_at timestamptz, doors jsonb)
language plpgsql stable security definer set search_path = '' as $$
declare
  v_in_vault text[] := '{}';
begin
  if pg_catalog.to_regclass('vault.decrypted_secrets') is not null then
    v_in_vault := array(select s.name from vault.decrypted_secrets s where s.name in (select n.name from webhook.secret_names n));
  end if;
  return query select statement_timestamp(), jsonb_build_object(
    'endpoint', (select coalesce(jsonb_object_agg(e.name, to_jsonb(e)), '{}') from public.webhook_endpoints e),
    'site', (select coalesce(jsonb_object_agg(s.site_id, to_jsonb(s)), '{}') from public.call_sites s),
    'secret', (
      select coalesce(jsonb_object_agg(n.name, to_jsonb(n) || jsonb_build_object('in_vault', n.name = any (v_in_vault))), '{}')
      from webhook.secret_names n
    )
  );
end
$$;
