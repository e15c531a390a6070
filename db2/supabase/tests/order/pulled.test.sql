-- What Stripe answers to a question of ours counts as what it tells by a webhook.
begin;
select plan(23);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
create function pg_temp.session(p_object jsonb default '{}') returns jsonb language sql as $$
  select jsonb_build_object('id', 'cs_1', 'object', 'checkout.session', 'payment_intent', 'pi_1', 'amount_total', 2000,
    'currency', 'usd', 'livemode', true, 'status', 'complete', 'payment_status', 'paid', 'metadata', jsonb_build_object(
      'user_id', 'ann', 'claim_id', tests.claim_id(1), 'checkout', tests.claim_id(1) || ':1')) || p_object
$$;
select is(public.record_pulled('stripe', pg_temp.session()), 'success', 'a paid session is told');
select results_eq(
  $$ select e.provider, e.event_id, e.event_type, e.backfilled, e.status::text, p.name from public.webhook_events e
     join public.webhook_endpoints p using (webhook_id) $$,
  $$ values ('stripe', 'pull:cs_1', 'checkout.session.completed', true, 'success', 'stripe_live') $$, 'as an event of its tenant'
);
select is((select fact ->> 'livemode' from public.claim_outbox), 'true', 'the intake is to be asked about it');
create temp table after as select tests.state() as state;
select is(public.record_pulled('stripe', pg_temp.session()), 'success', 'a second pull');
select is(public.record_pulled('stripe', pg_temp.session('{"url": null}')), 'success', 'also of a session that looks otherwise by now');
select is(tests.state() || (select count(*) from public.webhook_alarms), (select state from after) || '0', 'changes nothing, and raises no alarm');
select isnt(tests.pay(1), null, 'its webhook comes after all');
select is((select count(*)::int from public.claim_outbox) || ' ' || tests.owed(), '1 2000 0', 'and tells nothing new');

select is(
  public.record_pulled('stripe', pg_temp.session('{"id": "cs_2", "payment_intent": "pi_2", "livemode": false}')), 'skipped',
  'a test session is not for a live endpoint'
);
select webhook.add_endpoint('stripe_test', 'stripe', '{STRIPE_SECRET}', 'queued', '{"livemode": "test"}', 'tests', null, 'stripe');
select is(
  public.record_pulled('stripe', pg_temp.session('{"id": "cs_3", "payment_intent": "pi_3", "livemode": false}')), 'success',
  'but for the one of its tenant that takes those'
);
select is((select (fact ->> 'livemode') from public.claim_outbox where payment_key = 'stripe/pi_3'), 'false', 'the intake hears that it is a test');
select is(
  public.record_pulled('stripe', '{"id": "re_1", "object": "refund", "payment_intent": "pi_1", "amount": 2000, "currency": "usd", "status": "pending"}'),
  'success', 'a refund is told'
);
select is((select refunded from public.payments where object_id = 'pi_1'), 2000::bigint, 'and counts');

-- Stripe's clock is a minute ahead of ours.
create function pg_temp.told(p_type text, p_object jsonb) returns text language sql as $$
  select tests.apply_payment(p_type, '{"payment_intent": "pi_1", "currency": "usd"}' || p_object, now() + interval '1 minute')
$$;
select pg_temp.told('charge.refunded', '{"id": "ch_1", "amount": 2000, "amount_captured": 2000, "amount_refunded": 2000, "captured": true}');
select is(pg_temp.told('refund.failed', '{"id": "re_1", "amount": 2000, "status": "failed"}'), null, 'the refund fails');
select is(
  public.record_pulled('stripe', '{"id": "re_5", "object": "refund", "payment_intent": "pi_1", "amount": 700, "currency": "usd", "status": "failed"}'),
  'skipped', 'another one that failed is pulled, at a time of ours, and changes no sum'
);
select is(
  (select array_agg(r.failed_at >= p.refund_told_at) from public.payment_refunds r join public.payments p using (provider, object_id)),
  '{t,t}', 'which is no earlier than what Stripe has told'
);
select tests.refuses($$ select public.record_pulled('stripe', '{"id": "pi_9", "object": "payment_intent"}') $$, 'SL001', 'another object');
select tests.refuses($$ select public.record_pulled('stripe', '{"object": "refund"}') $$, 'SL001', 'one without an id');
select tests.refuses($$ select public.record_pulled('stripe:other', pg_temp.session()) $$, 'SL031', 'a tenant without an endpoint');
select is(
  public.record_pulled('stripe', pg_temp.session('{"id": "cs_4", "payment_intent": "pi_4", "amount_total": "many"}')), 'dead_letter',
  'what no retry can mend is seen among the dead letters'
);

select * from finish();
rollback;
