-- WEBHOOKS, handlers: what Node's workers and servers need beyond taking and processing: handlers written in TypeScript,
-- and a word when there is work.

-- Promise: the events of these types go to the TypeScript handlers of these names ([{name, provider, event_type,
-- webhook_id}]), whatever took them before; a type that a named handler no longer lists is taken away from it. Returns how
-- many rows changed. Raises SL001 for what is no such list. Second call: 0. Locks: the changed rows, and other
-- registrations, so that two workers that start together do not deadlock.
create function webhook.register_handlers(p_handlers jsonb)
returns int
language plpgsql
security definer
set search_path = ''
as $$
declare
  v_removed int;
  v_written int;
begin
  if jsonb_typeof(p_handlers) is distinct from 'array' then
    raise exception 'handlers are a JSON array' using errcode = 'SL001';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('webhook.register_handlers', 0));
  delete from public.webhook_handlers h
  where h.kind = 'typescript'
    and h.name in (select r ->> 'name' from jsonb_array_elements(p_handlers) r)
    and not exists (
      select from jsonb_to_recordset(p_handlers) as r (name text, provider text, event_type text, webhook_id uuid)
      where r.name = h.name and r.provider = h.provider and r.event_type = h.event_type
        and r.webhook_id is not distinct from h.webhook_id
    );
  get diagnostics v_removed = row_count;
  insert into public.webhook_handlers as h (provider, event_type, webhook_id, kind, name)
  select r.provider, r.event_type, r.webhook_id, 'typescript', r.name
  from jsonb_to_recordset(p_handlers) as r (name text, provider text, event_type text, webhook_id uuid)
  on conflict on constraint one_handler_per_type do update
    set kind = excluded.kind, name = excluded.name
    where (h.kind, h.name) is distinct from (excluded.kind, excluded.name);
  get diagnostics v_written = row_count;
  return v_removed + v_written;
exception
  when not_null_violation or check_violation or cardinality_violation or invalid_text_representation then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the event under a new lease, as webhook.take_events would give it, for a server that lets it take effect while
-- the provider waits; no row where it has ended, is held by another, or its handler is none of p_handlers.
-- Second call: no row, until the lease has run out. Locks: the event.
create function webhook.begin_typescript_event(
  p_id uuid,
  p_handlers text[]
)
returns table (
  id uuid, lease_token uuid, webhook_id uuid, provider text, event_id text, event_type text, occurred_at timestamptz,
  attempts int, payload jsonb, handler_kind text, handler_name text, idempotency_key text, max_attempts int,
  takeovers int
)
language plpgsql
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_handler text;
  v_lease_token uuid;
begin
  select h.name into v_handler
  from public.webhook_events e
  cross join lateral webhook.find_handlers(array[e.webhook_id], array[e.provider], array[e.event_type]) h
  where e.id = p_id and h.kind = 'typescript' and h.name = any (p_handlers);
  if v_handler is null then
    return;
  end if;
  v_lease_token := webhook.begin_event(p_id);
  return query
  select e.id, e.lease_token, e.webhook_id, e.provider, e.event_id, e.event_type, e.occurred_at, e.attempts, e.payload,
    'typescript', v_handler, coalesce(e.idempotency_key, e.provider || ':' || e.event_id), coalesce(p.max_attempts, 5),
    e.takeovers
  from public.webhook_events e
  left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
  where e.id = p_id and e.lease_token = v_lease_token;
end
$$;

-- Promise: workers that listen look for events now. Never called in the transaction that records: a notify takes a global
-- lock at commit. Second call: they look again. Locks: none of its own.
create function webhook.wake_workers()
returns void
language sql
set search_path = ''
as $$
  select pg_catalog.pg_notify('sluice_webhooks', '');
$$;
