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
  delete from webhook.handler_faults f where f.name = p_name;
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

-- Promise: the TypeScript handlers whose events have been due for more than p_sec seconds, with how many and for how long:
-- no worker that has these handlers is running. Second call: the same, later. Locks: none.
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

-- Faulty registrations. The handler is disabled: events of its types wait (webhook.event_lanes).
create table webhook.handler_faults (
  name text primary key,
  fault text not null,
  since timestamptz not null default now()
);

-- Promise: the disabled handlers, by name. Second call: the same. Locks: none.
create function webhook.list_handler_faults() returns setof webhook.handler_faults
language sql stable security definer set search_path = '' as $$
  select f.* from webhook.handler_faults f order by f.name;
$$;

-- Promise: each of the registrations with what is wrong with it: what its worker says (fault), a type that an SQL handler
-- owns (a worker that is started once must not end the built-in effects for good), or one that stands before it in the
-- list. is_taken: the type is another's, and stays so. Raises SL001 for anything else. Second call: the same. Locks: none.
create function webhook.judge_registrations(p_handlers jsonb)
returns table (name text, provider text, event_type text, webhook_id uuid, is_taken boolean, fault text)
language plpgsql stable set search_path = '' as $$
begin
  if jsonb_typeof(p_handlers) is distinct from 'array' then
    raise exception 'handlers are a JSON array' using errcode = 'SL001';
  end if;
  return query
  select r.name, r.provider, r.event_type, r.webhook_id, h.name is not null or r.place > 1 or r.event_type is null,
    coalesce(r.fault, case
      when h.name is not null then format(
        '%s %s belongs to the SQL handler %s: give yours a webhookId, the handler of an endpoint comes first',
        r.provider, r.event_type, h.name)
      when r.place > 1 then format('%s %s is registered twice', r.provider, r.event_type)
    end)
  from (
    select t.*, row_number() over (partition by t.provider, t.event_type, t.webhook_id order by t.ordinal) as place
    from rows from (jsonb_to_recordset(p_handlers)
      as (name text, provider text, event_type text, webhook_id uuid, fault text)) with ordinality
      as t (name, provider, event_type, webhook_id, fault, ordinal)
  ) r
  left join public.webhook_handlers h on h.provider = r.provider and h.event_type = r.event_type
    and h.webhook_id is not distinct from r.webhook_id and h.kind = 'sql';
end
$$;

-- Promise: the events of these types go to the TypeScript handlers of these names ([{name, provider, event_type,
-- webhook_id, fault}]), whatever TypeScript handler took them before; a type that a named handler no longer lists is taken
-- away from it. A handler with a fault (webhook.judge_registrations) has its other types all the same, so that their events
-- wait, and is disabled until a registration of its name has none. Returns how many rows changed. Raises SL001 for anything but
-- such a list. Second call: 0. Locks: the changed rows, and other registrations, so that two workers that start together do not
-- deadlock.
create function webhook.register_handlers(p_handlers jsonb) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_removed int;
  v_written int;
begin
  perform pg_advisory_xact_lock(hashtextextended('webhook.register_handlers', 0));
  -- One without a name is called after its place in the list, which is another's next time.
  delete from webhook.handler_faults f
  where (f.name in (select j.name from webhook.judge_registrations(p_handlers) j) or f.name ~ '^handler [0-9]+$')
    and f.name not in (select j.name from webhook.judge_registrations(p_handlers) j where j.fault is not null);
  insert into webhook.handler_faults as f (name, fault)
  select j.name, min(j.fault) from webhook.judge_registrations(p_handlers) j where j.fault is not null group by j.name
  on conflict on constraint handler_faults_pkey do update set fault = excluded.fault where f.fault <> excluded.fault;
  delete from public.webhook_handlers h
  where h.kind = 'typescript'
    and h.name in (select r ->> 'name' from jsonb_array_elements(p_handlers) r)
    and not exists (
      select from webhook.judge_registrations(p_handlers) j
      where j.name = h.name and j.provider = h.provider and j.event_type = h.event_type
        and j.webhook_id is not distinct from h.webhook_id and not j.is_taken
    );
  get diagnostics v_removed = row_count;
  insert into public.webhook_handlers as h (provider, event_type, webhook_id, kind, name)
  select j.provider, j.event_type, j.webhook_id, 'typescript', j.name
  from webhook.judge_registrations(p_handlers) j
  where not j.is_taken
  on conflict on constraint one_handler_per_type do update
    set name = excluded.name
    where h.kind = 'typescript' and h.name <> excluded.name;
  get diagnostics v_written = row_count;
  return v_removed + v_written;
exception
  when not_null_violation or check_violation or invalid_text_representation then
    raise exception '%', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: the event under a new lease, as webhook.take_events would give it, for a server that lets it take effect while
-- the provider waits; no row if it has ended, another worker holds it, or its handler is not in p_handlers or is disabled.
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
          and not exists (select from webhook.handler_faults f where f.name = h.name)
      )
    for update skip locked
  );
begin
  return query select t.* from webhook.lease_events(array[v_id]) t where v_id is not null;
end
$$;

-- What a handler wants to be answered to a provider that reads it: TwiML for Twilio. It goes when the payload goes.
-- event_id has no foreign key, so that the events can be truncated.
create table webhook.replies (
  event_id uuid primary key,
  body text not null,
  -- Twilio takes 64 KB.
  constraint reply_has_1_to_65536_characters check (length(body) between 1 and 65536)
);

-- Promise: deliveries of this event to an inline endpoint are answered with p_body, if its provider reads answers. Called by
-- its handler, in the transaction of the effect. Second call: replaces the first. Locks: the reply.
create function webhook.reply_event(p_id uuid, p_body text) returns void
language sql security definer set search_path = '' as $$
  insert into webhook.replies as r (event_id, body) values (p_id, p_body)
  on conflict (event_id) do update set body = excluded.body;
$$;

-- Promise: the reply that the event's handler gave; null where it gave none. Second call: the same. Locks: none.
create function webhook.find_reply(p_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select r.body from webhook.replies r where r.event_id = p_id;
$$;

-- Promise: workers that listen look for events now. Never called in the transaction that records: a notify takes a global
-- lock at commit. Second call: they look again. Locks: none of its own.
create function webhook.wake_workers() returns void
language sql set search_path = '' as $$
  select pg_catalog.pg_notify('sluice_webhooks', '');
$$;
