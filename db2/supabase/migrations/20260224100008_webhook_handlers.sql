-- WEBHOOKS, handlers: which there are, what Node's workers and servers need for those written in TypeScript, and a word
-- when there is work.

-- Promise: all handlers, by what they take. Second call: the same. Locks: none.
create function webhook.list_handlers() returns setof public.webhook_handlers
language sql stable security definer set search_path = '' as $$
  select h.* from public.webhook_handlers h order by h.provider, h.event_type, h.webhook_id nulls first;
$$;

-- Promise: no event goes to the handler of this name any more: its types go to the next best one, or are skipped; an
-- audit row says what it took. Returns how many types that were. A worker that still has a handler of this name registers
-- it again. Second call: 0, no audit row. Locks: the rows, and registrations.
create function webhook.remove_handler(p_name text, p_actor text, p_reason text default null) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_removed jsonb;
begin
  perform pg_advisory_xact_lock(hashtextextended('webhook.register_handlers', 0));
  with removed as (
    delete from public.webhook_handlers h where h.name = p_name returning h.*
  )
  select jsonb_agg(to_jsonb(r)) into v_removed from removed r;
  if v_removed is null then
    return 0;
  end if;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'webhook_handler_remove', 'webhook handler ' || p_name, p_reason,
    jsonb_build_object('handlers', v_removed));
  return jsonb_array_length(v_removed);
end
$$;

-- Promise: the TypeScript handlers that events have been due for since more than p_sec seconds, with how many and for how
-- long: nobody who has them is at work. Second call: the same, later. Locks: none.
create function webhook.missing_handlers(p_sec int)
returns table (name text, events bigint, oldest_due_sec double precision)
language sql stable security definer set search_path = '' as $$
  select h.name, count(*), extract(epoch from clock_timestamp() - min(e.next_attempt_at))::double precision
  from (select distinct t.name, t.lane from public.webhook_handlers t where t.kind = 'typescript') h
  join public.webhook_events e on e.lane = h.lane
  where e.status in ('pending', 'failed', 'processing')
    and e.next_attempt_at < clock_timestamp() - make_interval(secs => p_sec)
  group by h.name
  order by h.name;
$$;

-- Promise: the events of these types go to the TypeScript handlers of these names ([{name, provider, event_type,
-- webhook_id}]), whatever TypeScript handler took them before; a type that a named handler no longer lists is taken away
-- from it. Returns how many rows changed. Raises SL001 for what is no such list, and where a type belongs to an SQL handler:
-- a worker that is started once must not end the built-in effects for good. Second call: 0. Locks: the changed rows, and
-- other registrations, so that two workers that start together do not deadlock.
create function webhook.register_handlers(p_handlers jsonb) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_owner public.webhook_handlers;
  v_removed int;
  v_written int;
begin
  if jsonb_typeof(p_handlers) is distinct from 'array' then
    raise exception 'handlers are a JSON array' using errcode = 'SL001';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('webhook.register_handlers', 0));
  select h.* into v_owner
  from jsonb_to_recordset(p_handlers) as r (provider text, event_type text, webhook_id uuid)
  join public.webhook_handlers h on h.provider = r.provider and h.event_type = r.event_type
    and h.webhook_id is not distinct from r.webhook_id
  where h.kind = 'sql'
  limit 1;
  if found then
    raise exception '% % belongs to the SQL handler %: give yours a webhookId, the handler of an endpoint comes first',
      v_owner.provider, v_owner.event_type, v_owner.name using errcode = 'SL001';
  end if;
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
    set name = excluded.name
    where h.kind = 'typescript' and h.name <> excluded.name;
  get diagnostics v_written = row_count;
  return v_removed + v_written;
exception
  when not_null_violation or check_violation or cardinality_violation or invalid_text_representation then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the event under a new lease, as webhook.take_events would give it, for a server that lets it take effect while
-- the provider waits; no row where it has ended, is held by another, or its handler is none of p_handlers.
-- Second call: no row, until the lease has run out. Locks: the event; one that is locked is held by another.
create function webhook.begin_typescript_event(p_id uuid, p_handlers text[]) returns setof webhook.taken_event
language plpgsql security definer set search_path = '' as $$
declare
  v_id uuid := (
    select e.id
    from public.webhook_events e
    where e.id = p_id
      and (e.status in ('pending', 'failed') or e.status = 'processing' and e.lease_until <= clock_timestamp())
      and exists (
        select from webhook.find_handlers(array[e.webhook_id], array[e.provider], array[e.event_type]) h
        where h.kind = 'typescript' and h.name = any (p_handlers)
      )
    for update skip locked
  );
begin
  return query select t.* from webhook.lease_events(array[v_id]) t where v_id is not null;
end
$$;

-- Promise: workers that listen look for events now. Never called in the transaction that records: a notify takes a global
-- lock at commit. Second call: they look again. Locks: none of its own.
create function webhook.wake_workers() returns void
language sql set search_path = '' as $$
  select pg_catalog.pg_notify('sluice_webhooks', '');
$$;
