-- A payment that names an order: the intake is to be asked once what it is for, whatever events tell it.
begin;
select plan(17);

select is(tests.pay(1), null, 'a payment names an order');
select results_eq(
  $$ select id, kind, payment_key, state, fact from public.claim_outbox $$,
  format($$ values ('settle:stripe/pi_1', 'settle', 'stripe/pi_1', 'due', %L::jsonb) $$, jsonb_build_object(
    'payment_key', 'stripe/pi_1', 'tenant', 'stripe', 'livemode', true, 'claim_id', tests.claim_id(1), 'user_id', 'ann',
    'verified', 'true', 'amount', 2000, 'currency', 'usd', 'checkout', tests.claim_id(1) || ':1')),
  'the intake is to be asked about it, with all that it has to know'
);
select is((select order_id from public.payments), tests.claim_id(1), 'the payment knows its order');
select is(
  (select tests.pay(1, '{"id": "ch_1", "payment_intent": "pi_1", "amount_captured": 2000}', 'charge.succeeded')), 'already known',
  'its charge tells the same'
);
select is(
  (select tests.pay(1, '{"id": "cs_1", "payment_intent": "pi_1", "amount_total": 2000, "payment_status": "paid"}', 'checkout.session.completed')),
  'already known', 'and its session'
);
select is((select count(*)::int from public.claim_outbox), 1, 'there is one row');
select tests.refuses($$ select tests.pay(2) $$, 'SL030', 'another order for the same payment is an error');
select is(tests.settle('funds'), 'done', 'the intake decides');
select is(tests.pay(1), 'already known', 'an event that comes again');
select is((select state from public.claim_outbox), 'done', 'does not ask again');

select tests.pay(1, '{"id": "pi_2", "metadata": {"user_id": "ann", "claim_id": "order 7"}}');
select tests.pay(1, '{"id": "pi_3", "metadata": {"user_id": "ann"}}');
select is(
  (select count(*)::int from public.claim_outbox), 1, 'a payment without an order, or with a claim_id that is not ours, asks nothing'
);
select is(
  tests.apply_payment('charge.succeeded', '{"id": "ch_4", "payment_intent": "pi_4", "amount": 2000, "currency": "usd"}'), null,
  'an event that names no order'
);
select is(tests.pay(1, '{"id": "pi_4"}'), null, 'is followed by one that does');
select is(
  (select state from public.claim_outbox where id = 'settle:stripe/pi_4'), 'due', 'and then the intake is asked'
);
select is(
  tests.pay(1, '{"id": "pi_5", "status": "requires_payment_method"}', 'payment_intent.created'), null, 'where no money moved'
);
select is((select count(*)::int from public.claim_outbox where id like '%pi_5'), 0, 'it is not');

select * from finish();
rollback;
