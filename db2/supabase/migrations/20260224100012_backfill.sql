-- BACKFILL: Sluice asks the provider for the events it sent while we were away, and webhook.record_events records them like
-- deliveries (p_backfilled). Here are the turns of the processes that ask, and what they compare with.

-- Promise: an audit row says who asks for what the provider sent from p_since until p_until. Raises SL031 if the endpoint does
-- not exist. Second call: a second row. Locks: none.
create function webhook.begin_backfill(
  p_webhook_id uuid,
  p_since timestamptz,
  p_until timestamptz,
  p_actor text,
  p_reason text default null
)
returns void
language plpgsql security definer set search_path = '' as $$
declare
  v_name text := (select e.name from public.webhook_endpoints e where e.webhook_id = p_webhook_id);
begin
  if v_name is null then
    raise exception 'no endpoint has the id %', p_webhook_id using errcode = 'SL031';
  end if;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'webhook_backfill', 'webhook endpoint ' || v_name, p_reason,
    jsonb_build_object('webhook_id', p_webhook_id, 'since', p_since, 'until', p_until));
end
$$;

-- Promise: true for one caller in p_every_sec seconds, however many ask: that one compares the endpoint with its provider. A
-- caller that dies with it is followed by the next one when the time is over. False for an endpoint that is switched off.
-- Second call: false. Locks: the endpoint.
create function webhook.begin_comparison(p_webhook_id uuid, p_every_sec int) returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  update public.webhook_endpoints e
  set compared_at = clock_timestamp()
  where e.webhook_id = p_webhook_id and e.is_active
    and coalesce(e.compared_at <= clock_timestamp() - make_interval(secs => p_every_sec), true);
  return found;
end
$$;

-- Promise: those of the ids under which the endpoint's tenant has an event. Second call: the same. Locks: none.
create function webhook.known_events(p_webhook_id uuid, p_event_ids text[]) returns setof text
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select e.event_id
  from public.webhook_endpoints p
  join public.webhook_events e on e.provider = p.tenant and e.event_id = any (p_event_ids)
  where p.webhook_id = p_webhook_id;
$$;

-- Promise: those of the tenant's payments that are named, as the ledger knows them. Second call: the same. Locks: none.
create function webhook.find_payments(p_tenant text, p_object_ids text[]) returns setof public.payments
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select p.* from public.payments p where p.provider = p_tenant and p.object_id = any (p_object_ids);
$$;

-- Promise: those of the tenant's balance transactions that are named, as the ledger knows them. Second call: the same. Locks: none.
create function webhook.find_transactions(p_tenant text, p_transaction_ids text[]) returns setof public.payment_transactions
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select t.* from public.payment_transactions t
  where t.provider = p_tenant and t.transaction_id = any (p_transaction_ids);
$$;
