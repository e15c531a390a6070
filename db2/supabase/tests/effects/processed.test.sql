-- What a handler answers or raises is what becomes of its event, when service_role processes it.
begin;
select plan(14);

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
select pg_temp.deliver('evt_nobody', 'payment_intent.succeeded', '{"id": "pi_2", "payment_intent": null, "metadata": {}}');
select pg_temp.deliver('evt_bad', 'payment_intent.succeeded', '{"id": "pi_3", "payment_intent": null, "currency": null}');
select pg_temp.deliver('evt_unknown', 'customer.created', '{"id": "cus_1"}');
select is(pg_temp.process_due(), 4::bigint, 'four events are processed');
select is(pg_temp.result('evt_refund'), 'success', 'a refund before its payment is recorded');
select is(pg_temp.result('evt_nobody'), 'success', 'so is a payment without a user');
select is(pg_temp.result('evt_bad'), 'dead_letter: no currency', 'what no retry can mend is a dead letter at once');
select is(pg_temp.result('evt_unknown'), 'skipped: no handler for customer.created', 'an unknown type is skipped');
select is((select count(*) from public.credit_ledger), 0::bigint, 'none of them moved money of a user');

select pg_temp.deliver('evt_charge', 'charge.succeeded', '{"id": "ch_1"}');
select pg_temp.deliver('evt_intent', 'payment_intent.succeeded', '{"id": "pi_1", "payment_intent": null}');
select pg_temp.deliver('evt_created', 'payment_intent.created', '{"id": "pi_1", "payment_intent": null}');
select is(pg_temp.process_due(), 3::bigint, 'the payment comes');
select is(pg_temp.result('evt_charge'), 'success', 'the first event that tells the payment has an effect');
select is(pg_temp.result('evt_intent'), 'skipped: already known', 'the second has none');
select is(pg_temp.result('evt_created'), 'skipped: older than what is known', 'a late one is skipped');
select results_eq(
  $$ select amount from webhook.balance('ann') $$, $$ values (700::bigint) $$, 'the refund counts with its payment'
);

-- An effect that has to wait.
insert into public.webhook_handlers (provider, event_type, kind, name) values ('stripe', 'act', 'sql', 'tests.act');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
values ('00000000-0000-4000-8000-000000000001', 'stripe', 'evt_early', 'act', '{"raise": "SL034"}');
create function pg_temp.waits(p_days interval) returns text
language sql as $$
  update public.webhook_events set next_attempt_at = now(), waiting_since = now() - p_days where event_id = 'evt_early';
  select pg_temp.process_due();
  select pg_temp.result('evt_early');
$$;
select pg_temp.process_due();
select results_eq(
  $$ select attempts, next_attempt_at > last_attempt_at + interval '45 seconds', waiting_since is not null
     from public.webhook_events where event_id = 'evt_early' $$,
  $$ values (0, true, true) $$,
  'which is not counted: it comes again after the longest wait'
);
select is(pg_temp.waits('6 days 23 hours'), 'failed: as told', 'it waits for seven days');
select is(pg_temp.waits('7 days 1 hour'), 'dead_letter: as told', 'and is a dead letter then');

select * from finish();
rollback;
