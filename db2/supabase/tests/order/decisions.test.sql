-- What the intake decided about a payment, in the ledger: at rest its rows add up to what is owed.
begin;
select plan(25);

select tests.pay(1);
select is(tests.owed(), '2000 0', 'a payment is the buyer''s money until the intake decides');
savepoint undecided;
select is(tests.settle('funds'), 'done', 'it bought tickets');
select results_eq(
  $$ select kind, amount, user_id, currency, object_id, event_id, business_key from public.credit_ledger order by id $$,
  $$ values ('payment', 2000::bigint, 'ann', 'usd', 'pi_1', (select last_event_id from public.payments), 'payment:pi_1:1'),
    ('purchase', -2000, 'ann', 'usd', 'pi_1', 'settle:stripe/pi_1', 'purchase:settle:stripe/pi_1') $$,
  'the ledger has the purchase'
);
select is(tests.owed(), '0 0', 'and nothing is owed');

select is(public.resettle_payments('{settle:stripe/pi_1,settle:none}', 'bob', 'restored'), 1, 'the intake is asked again');
select is(public.resettle_payments('{settle:stripe/pi_1}', 'bob'), 0, 'once');
select is((select fact ->> 'was' from public.claim_outbox), 'funds', 'and is told what was decided before');
select is(
  (select string_agg(actor || ' ' || subject || ' ' || reason, ',') from audit.audit_logs where action = 'payment_resettle'),
  'bob payment stripe/pi_1 restored', 'audited'
);
select is(tests.settle('funds', '{1}'), 'done', 'it says the same');
select is((select jsonb_array_length(result -> 'claim_ids') from public.claim_outbox), 2, 'where it knows fewer of the claims, the list stays');
select is(tests.owed(), '0 0', 'and nothing changes');
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select tests.settle('funds', '{3,4}');
select is(
  (select result -> 'claim_ids' from public.claim_outbox), to_jsonb(array[tests.claim_id(3), tests.claim_id(4)]), 'others take their place'
);
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select is(tests.settle('refund'), 'done', 'where it says that the slots are gone');
select is(tests.owed(), '2000 2000', 'the purchase is taken back, and owed');

rollback to undecided;
select tests.settle('refund');
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select is((select fact ->> 'was' from public.claim_outbox), 'refund', 'it is told of a refund');
select tests.settle('refund');
select is(tests.owed(), '2000 2000', 'which is owed once');
select tests.apply_payment('refund.created', '{"id": "re_1", "payment_intent": "pi_1", "amount": 2000, "currency": "usd"}');
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select is((select fact ->> 'was' from public.claim_outbox where kind = 'settle'), 'void', 'and that the money has gone back');
rollback to undecided;
select is(tests.settle('refund'), 'done', 'a payment that bought nothing');
select results_eq(
  $$ select id, payment_key, order_id, amount, currency, reason, state, is_auto from public.refunds_due $$,
  $$ values ('settle:stripe/pi_1', 'stripe/pi_1', tests.claim_id(1), 2000::bigint, 'usd', 'as told', 'due', true) $$,
  'is owed, and ours to send'
);
select is(tests.owed(), '2000 2000', 'the sums agree');
rollback to undecided;
select tests.settle('refund', '{1}', '{"is_own": false}');
select is((select state || is_auto from public.refunds_due), 'reviewfalse', 'not by a session of ours: an operator decides');
rollback to undecided;
select tests.settle('refund', '{1}', '{"refund_by": "operator"}');
select is((select state from public.refunds_due), 'review', 'nor where the pool''s operators refund');
rollback to undecided;
select tests.apply_payment('refund.created', '{"id": "re_1", "payment_intent": "pi_1", "amount": 500, "currency": "usd"}');
select tests.settle('refund');
select is(tests.owed(), '1500 1500', 'what went back before is not owed');
rollback to undecided;
select tests.settle('void');
select is((select count(*)::int from public.refunds_due), 0, 'a void owes nothing');
rollback to undecided;
select tests.settle('ignored');
select is((select count(*)::int from public.refunds_due), 0, 'nor does a payment that is not for the pool');

select * from finish();
rollback;
