-- What the webhooks suite needs on DB2: one insert for one delivery, and events that wait.
create schema bench;

-- The ledger refuses to be emptied; here it has to be, between two runs. Inserts never meet this trigger.
drop trigger credit_ledger_is_insert_only on public.credit_ledger;

-- Promise: one delivery is one row, or was one before: the shortest durable record there is. Second call: no row.
-- Locks: the new keys.
create function bench.insert_event(
  p_webhook_id uuid,
  p_event_id text,
  p_event_type text,
  p_occurred_at timestamptz,
  p_body text,
  p_hash text,
  p_signature text
)
returns table (id uuid)
language sql
set search_path = ''
as $$
  insert into public.webhook_events (
    webhook_id, provider, event_id, event_type, occurred_at, payload, raw_body, payload_hash, signature
  )
  select p_webhook_id, 'stripe', p_event_id, p_event_type, p_occurred_at, convert_from(b.body, 'UTF8')::jsonb, b.body,
    p_hash, p_signature
  from (select decode(p_body, 'base64') as body) b
  on conflict do nothing
  returning webhook_events.id;
$$;

-- Promise: p_events payments that wait, each of another buyer. Second call: unique_violation. Locks: the new rows.
create function bench.fill_events(p_events int)
returns void
language sql
set search_path = ''
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, occurred_at, payload)
  select e.webhook_id, 'stripe', 'evt_' || n, 'payment_intent.succeeded', now(), jsonb_build_object(
    'id', 'evt_' || n, 'object', 'event', 'type', 'payment_intent.succeeded', 'created', 1771927200,
    'data', jsonb_build_object('object', jsonb_build_object(
      'id', 'pi_' || n, 'object', 'payment_intent', 'amount', 2500, 'amount_received', 2500, 'currency', 'eur',
      'metadata', jsonb_build_object('user_id', 'user_' || n)
    ))
  )
  from generate_series(1, p_events) n
  cross join (select webhook_id from public.webhook_endpoints where name = 'bench') e;
$$;

-- Promise: the waiting events as JSON, in their order, to be given to another queue. Second call: the same.
-- Locks: none.
create function bench.waiting_events()
returns setof jsonb
language sql
set search_path = ''
as $$
  select to_jsonb(e) from public.webhook_events e order by e.arrival;
$$;

-- Promise: the effect that our worker lets an event take, for an event from elsewhere: the very same function.
-- Second call: changes nothing. Locks: those of webhook.apply_payment.
create function bench.apply_event(p_event jsonb)
returns text
language sql
set search_path = ''
as $$
  select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, p_event));
$$;
