-- What bought a ticket, for an intake that has forgotten the order.
begin;
select plan(6);

select is(public.ticket_purchase(tests.claim_id(1)), null, 'no such ticket');
select tests.sell_two();
select is(public.ticket_purchase(tests.claim_id(1)), jsonb_build_object(
  'order_id', tests.claim_id(1), 'payment_key', 'stripe/pi_1', 'tenant', 'stripe', 'livemode', true, 'amount', 2000, 'currency', 'usd',
  'seats', 2, 'reason', 'as told', 'is_own', true), 'a ticket that a payment bought');
select is(public.ticket_purchase(tests.claim_id(2)), public.ticket_purchase(tests.claim_id(1)), 'the other one of its order');
select tests.outcomes(tests.ticket(3, 'ann', 3));
select is(public.ticket_purchase(tests.claim_id(3)), null, 'one that no payment bought');
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select isnt(public.ticket_purchase(tests.claim_id(1)), null, 'also while the intake is asked again');
select tests.settle('refund');
select is(public.ticket_purchase(tests.claim_id(1)), null, 'not where the payment is to go back');

select * from finish();
rollback;
