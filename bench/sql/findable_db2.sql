-- Tickets of a million claims, and payments with their events and credits.
create function public.bench_findable(p_claims int, p_payments int) returns void
language plpgsql set search_path = '' as $$
declare
  v_webhook_id uuid;
begin
  insert into webhook.secret_names (name) values ('BENCH_SECRET') on conflict do nothing;
  perform webhook.add_endpoint('stripe', 'stripe', '{BENCH_SECRET}', p_actor => 'bench');
  select e.webhook_id into v_webhook_id from public.webhook_endpoints e where e.name = 'stripe';
  set local session_replication_role = replica;
  insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id, confirmed_at)
  select gen_random_uuid(), case when n % 10000 = 7 then 'rare' else 'large' end, 'user ' || n % 100000,
    (lpad(to_hex(1770000000000 + n * 3::bigint), 12, '0') || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
    to_timestamp(1770000000 + n * 0.003)
  from generate_series(1, p_claims) n;
  insert into public.payments (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
  select 'stripe', 'pi_' || n, 'user ' || n % 1000, 'succeeded', to_timestamp(1770000000 + n), n, 'evt_' || n, 100, 'eur', 100
  from generate_series(1, p_payments) n;
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, lane, next_attempt_at)
  select v_webhook_id, 'stripe', 'evt_' || n, 'payment_intent.succeeded', 'success', 0, null from generate_series(1, p_payments) n;
  insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
  select 'user ' || n % 1000, 100, 'eur', 'payment', 'stripe', 'pi_' || n, 'evt_' || n, 'payment:pi_' || n from generate_series(1, p_payments) n;
end
$$;
