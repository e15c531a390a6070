-- What a handler answers or raises is what becomes of its event, when service_role processes it.
begin;
select plan(12);

create function pg_temp.deliver(p_event_id text, p_type text, p_object jsonb)
returns void
language sql
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, occurred_at, payload)
  values (
    '00000000-0000-4000-8000-000000000001', 'stripe', p_event_id, p_type, '2026-03-01 12:00:00+00',
    jsonb_build_object('data', jsonb_build_object('object',
      '{"payment_intent": "pi_1", "amount": 1000, "currency": "usd", "metadata": {"user_id": "ann"}}' || p_object))
  );
$$;

-- As service_role, which may execute these two functions and write no table.
create function pg_temp.process_due()
returns bigint
language plpgsql
as $$
declare
  v_ids uuid[];
  v_tokens uuid[];
  v_processed bigint;
begin
  set local role service_role;
  select array_agg(t.id), array_agg(t.lease_token) into v_ids, v_tokens
  from webhook.take_events(100, '{}', '00000000-0000-4000-8000-000000000001') t;
  select count(*) into v_processed from webhook.process_events(v_ids, v_tokens);
  reset role;
  return v_processed;
end
$$;

create function pg_temp.result(p_event_id text)
returns text
language sql
as $$
  select concat_ws(': ', e.status, e.error) from public.webhook_events e where e.event_id = p_event_id;
$$;

select pg_temp.deliver('evt_refund', 'refund.created', '{"id": "re_1", "amount": 300, "metadata": {}}');
select pg_temp.deliver('evt_nobody', 'payment_intent.succeeded', '{"id": "pi_2", "metadata": {}}');
select pg_temp.deliver('evt_unknown', 'customer.created', '{"id": "cus_1"}');
select is(pg_temp.process_due(), 3::bigint, 'three events are processed');
select is(
  pg_temp.result('evt_refund'), 'failed: no metadata.user_id, and payment pi_1 not seen yet',
  'a refund before its payment has failed for now'
);
select is(
  pg_temp.result('evt_nobody'), 'dead_letter: no metadata.user_id', 'a payment of nobody is a dead letter at once'
);
select is(pg_temp.result('evt_unknown'), 'skipped: no handler for customer.created', 'an unknown type is skipped');
select is((select count(*) from public.credit_ledger), 0::bigint, 'none of them moved money');

select pg_temp.deliver('evt_charge', 'charge.succeeded', '{"id": "ch_1"}');
select pg_temp.deliver('evt_intent', 'payment_intent.succeeded', '{"id": "pi_1", "payment_intent": null}');
select pg_temp.deliver('evt_created', 'payment_intent.created', '{"id": "pi_1", "payment_intent": null}');
update public.webhook_events set next_attempt_at = now() where event_id = 'evt_refund';
select is(pg_temp.process_due(), 4::bigint, 'the payment comes, and the refund is due again');
select is(pg_temp.result('evt_charge'), 'success', 'the first event that tells the payment has an effect');
select is(pg_temp.result('evt_intent'), 'skipped: already known', 'the second has none');
select is(pg_temp.result('evt_created'), 'skipped: older than what is known', 'a late one is skipped');
-- The refund arrived first and is tried first: the batch that it breaks is tried again one by one.
select is(
  pg_temp.result('evt_refund'), 'failed: no metadata.user_id, and payment pi_1 not seen yet',
  'the refund fails once more, because it arrived before the payment'
);
update public.webhook_events set next_attempt_at = now() where event_id = 'evt_refund';
select is(pg_temp.process_due(), 1::bigint, 'the next time it is alone');
select results_eq(
  $$ select pg_temp.result('evt_refund'), (select amount from webhook.balance('ann')) $$,
  $$ values ('success', 700::bigint) $$,
  'and has its effect'
);

select * from finish();
rollback;
