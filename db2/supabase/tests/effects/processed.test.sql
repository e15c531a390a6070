-- What a handler answers or raises is what becomes of its event, when service_role processes it.
begin;
select plan(13);

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
  from webhook.take_events(
    array(select l.lane from webhook.event_lanes() l), array(select 100 from webhook.event_lanes())
  ) t;
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
select results_eq(
  $$ select attempts, next_attempt_at > last_attempt_at + interval '45 seconds', waiting_since is not null
     from public.webhook_events where event_id = 'evt_refund' $$,
  $$ values (0, true, true) $$,
  'which is not counted: it comes again after the longest wait'
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
-- The refund arrived first and breaks the batch; one by one, those that had trouble before come last.
select results_eq(
  $$ select pg_temp.result('evt_refund'), (select amount from webhook.balance('ann')) $$,
  $$ values ('success', 700::bigint) $$,
  'and the refund after them, though it arrived before'
);

-- For a payment that never comes.
select pg_temp.deliver('evt_orphan', 'charge.dispute.created', '{"id": "dp_1", "payment_intent": "pi_9", "metadata": {}}');
select pg_temp.process_due();
update public.webhook_events set next_attempt_at = now(), waiting_since = now() - interval '6 days 23 hours'
where event_id = 'evt_orphan';
select pg_temp.process_due();
select is(
  pg_temp.result('evt_orphan'), 'failed: no metadata.user_id, and payment pi_9 not seen yet', 'it waits for seven days'
);
update public.webhook_events set next_attempt_at = now(), waiting_since = now() - interval '7 days 1 hour'
where event_id = 'evt_orphan';
select pg_temp.process_due();
select is(
  pg_temp.result('evt_orphan'), 'dead_letter: no metadata.user_id, and payment pi_9 not seen yet',
  'and is a dead letter then'
);

select * from finish();
rollback;
