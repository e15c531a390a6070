-- What operators ask about an order beside its details: by its payment, by a refund, and what was done to it.
begin;
select plan(17);

select is(public.order_of_payment('pi_1'), null, 'a payment that is not known');
select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
select tests.pay(1);
select is(public.order_of_payment('pi_1'), tests.claim_id(1), 'an order is found by its payment');
select is(public.order_of_payment('stripe/pi_1'), tests.claim_id(1), 'and by the payment with its tenant');
select is(public.order_of_payment('other/pi_1'), null, 'not by that of another tenant');
select tests.apply('payment_intent.succeeded', '{"id": "pi_plain", "amount_received": 1000}');
select is(public.order_of_payment('pi_plain'), null, 'a payment for nothing of ours has none');

-- A payment that does not say its mode is live, as the endpoint's events are that do not.
select tests.apply_payment('payment_intent.succeeded', jsonb_build_object('id', 'pi_silent', 'amount_received', 10,
  'currency', 'usd', 'metadata', jsonb_build_object('user_id', 'ann', 'claim_id', tests.claim_id(7))));
select is((select fact -> 'livemode' from public.claim_outbox where id = 'settle:stripe/pi_silent'), 'true', 'no mode is the live one');

select tests.settle('refund', '{1}', '{"is_own": false}');
select is((select state from public.get_refund('settle:stripe/pi_1')), 'review', 'a refund by its id');
select is((select count(*)::int from public.get_refund('settle:stripe/pi_2')), 0, 'or none');

create temp table before as select tests.state() as state, (select count(*) from audit.audit_logs) as rows;
select results_eq(
  $$ select * from public.decide_refunds('{settle:stripe/pi_1,none}', 'send', 'bob', null, true) order by 1 $$,
  $$ values ('none', 'unknown'), ('settle:stripe/pi_1', 'would_send') $$, 'a dry run says what would be done'
);
select is(
  (select outcome from public.decide_refunds('{settle:stripe/pi_1}', 'skip', 'bob', null, true)), 'would_skip', 'of both kinds'
);
select results_eq(
  $$ select tests.state(), count(*) from audit.audit_logs $$, $$ select * from before $$, 'and changes nothing'
);
select is((select count(*)::int from public.order_audit(tests.claim_id(1), '{}')), 0, 'nothing was done to the order');
select public.decide_refunds('{settle:stripe/pi_1}', 'send', 'bob', 'she asked');
select public.request_void(array[tests.claim_id(2)], true, 'cid', 'rain');
select public.resettle_payments('{settle:stripe/pi_1}', 'dan', 'restored');
select results_eq(
  $$ select actor, action from public.order_audit(tests.claim_id(1), array[tests.claim_id(1), tests.claim_id(2)]) $$,
  $$ values ('bob', 'refund_send'), ('cid', 'ticket_void'), ('dan', 'payment_resettle') $$,
  'what was done to its refunds, claims and payments, oldest first'
);
select is(
  (select string_agg(action, ' ') from public.order_audit(tests.claim_id(1), array[tests.claim_id(1)])), 'refund_send payment_resettle',
  'and not to the claims of others'
);

-- Payments that name a claim which is not paid for are no concern of an operator; those of another tenant or mode are.
create function pg_temp.ignored() returns int language sql as $$
  select (public.ledger_order_metrics() #>> '{decisions,ignored}')::int
$$;
select tests.settle('ignored', '{7}', '{"reason": "no_order"}', 'pi_silent');
select is(pg_temp.ignored(), 0, 'a payment for a free claim is not told');
select tests.pay(9, '{"id": "pi_9"}');
select tests.settle('ignored', '{9}', '{"reason": "tenant"}', 'pi_9');
select is(pg_temp.ignored(), 1, 'one of another tenant is');
select is(
  (public.ledger_sample() -> 'orders') - 'refunds_oldest_sec', public.ledger_order_metrics() - 'refunds_oldest_sec',
  'the live view has them too'
);

select * from finish();
rollback;
