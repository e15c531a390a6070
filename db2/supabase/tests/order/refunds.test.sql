-- What we owe goes out once, and what Stripe answers is told in the transaction that marks it.
begin;
select plan(49);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
create function pg_temp.stripes(p_object jsonb default '{}') returns jsonb language sql as $$
  select '{"id": "re_1", "object": "refund", "payment_intent": "pi_1", "amount": 2000, "currency": "usd", "status": "pending",
    "metadata": {"sluice_refund": "settle:stripe/pi_1"}}' || p_object
$$;
create function pg_temp.standing() returns text language sql as $$
  select concat_ws(' ', r.state, r.tries, r.provider_refund_id, r.error) from public.refunds_due r where r.id = 'settle:stripe/pi_1'
$$;
select tests.pay(1);
select tests.settle('refund');
create temp table taken as select * from public.refunds_take(10, 60);
select results_eq(
  $$ select id, tenant, payment, payment_key, order_id, amount, currency, reason, refund_key, tries from taken $$,
  $$ values ('settle:stripe/pi_1', 'stripe', 'pi_1', 'stripe/pi_1', tests.claim_id(1), 2000::bigint, 'usd', 'as told', 'settle:stripe/pi_1', 1) $$,
  'the refunder has all that it needs'
);
select is((select count(*)::int from public.refunds_take(10, 60)), 0, 'another take has nothing');
savepoint taken;

select tests.refuses(
  $$ select public.refund_sent(id, token, pg_temp.stripes('{"payment_intent": "pi_2"}')) from taken $$, 'SL001', 'a refund of another payment'
);
select tests.refuses($$ select public.refund_sent('void:none', token, pg_temp.stripes()) from taken $$, 'SL001', 'a refund that we do not owe');
select is((select public.refund_sent(id, token, pg_temp.stripes()) from taken), 'sent', 'Stripe has it');
select is(pg_temp.standing(), 'sent 1 re_1', 'the row says so');
select is((select refunded from public.payments), 2000::bigint, 'the payment too, without a webhook');
select is((select event_id || ' ' || status from public.webhook_events), 'pull:re_1 success', 'by an event');
select is(tests.owed(), '0 0', 'nothing is owed any more');
select is((select public.refund_sent(id, token, pg_temp.stripes()) from taken), 'sent', 'a second call says the same');
select is((select count(*)::int from public.credit_ledger), 2, 'and writes nothing');
select isnt(tests.apply_payment('refund.updated', pg_temp.stripes('{"status": "succeeded"}')), null, 'its webhook says that the buyer has it');
select is(pg_temp.standing(), 'done 1 re_1', 'the row says so');
select isnt(tests.apply_payment('refund.created', pg_temp.stripes()), null, 'an older word');
select is(pg_temp.standing(), 'done 1 re_1', 'does not take it back');
select is(
  tests.apply_payment('refund.failed', pg_temp.stripes('{"status": "failed", "failure_reason": "lost_or_stolen_card"}')), null, 'it fails after all'
);
select is(pg_temp.standing() || ' ' || tests.owed(), 'failed 1 re_1 lost_or_stolen_card 2000 2000', 'it is owed again, and an operator decides');
select is((select count(*)::int from public.refunds_take(10, 60)), 0, 'it does not go out by itself');
select is((select outcome from public.decide_refunds('{settle:stripe/pi_1}', 'send', 'bob', 'other card')), 'due', 'an operator sends it');
select is(
  (select refund_key || ' ' || tries from public.refunds_take(10, 60)), 'settle:stripe/pi_1:try2 1',
  'under a new key: Stripe would answer the old one with the refund that failed'
);
select tests.apply_payment('refund.failed', pg_temp.stripes('{"status": "failed"}'));
select is((select state from public.refunds_due), 'due', 'a word about the old one does not stop it');
update public.refunds_due set state = 'failed';
select public.decide_refunds('{settle:stripe/pi_1}', 'send', 'bob', 'other card again');
select is(
  (select refund_key from public.refunds_due), 'settle:stripe/pi_1:try3', 'the keys are counted, so a restored ledger comes to the same ones'
);

rollback to taken;
select is(
  (select public.refund_sent(id, gen_random_uuid(), pg_temp.stripes('{"metadata": {}}')) from taken), 'lost_lease', 'who lost the lease'
);
select is((select refunded from public.payments), 2000::bigint, 'still tells what Stripe did');
select is(pg_temp.standing(), 'done 1 the payment went back another way', 'after which nothing is left to send');

rollback to taken;
select is(tests.apply_payment('refund.created', pg_temp.stripes()), null, 'the webhook is faster than the answer');
select is(pg_temp.standing(), 'sent 1 re_1', 'and is known by its metadata');
select is((select public.refund_sent(id, token, pg_temp.stripes('{"status": "succeeded"}')) from taken), 'done', 'the answer follows');

rollback to taken;
update public.refunds_due set tries = 9;
savepoint ninth;
select is((select public.refund_failed(id, token, 'timeout', false, 15) from taken), true, 'Stripe is away');
select ok((select next_attempt_at < clock_timestamp() + interval '16 seconds' from public.refunds_due), 'the next try is soon after');
rollback to ninth;
select public.refund_failed(id, token, 'no key', false) from taken;
select ok((select next_attempt_at > clock_timestamp() + interval '500 seconds' from public.refunds_due), 'else each pause is twice the last');

rollback to taken;
select is((select public.refund_failed(id, token, 'timeout', false) from taken), true, 'Stripe does not answer');
select is(pg_temp.standing(), 'due 1 timeout', 'it is tried again');
select is((select public.refund_failed(id, token, 'timeout', false) from taken), false, 'the lease is gone');
update public.refunds_due set next_attempt_at = now();
create temp table second as select * from public.refunds_take(10, 60);
select is((select tries || refund_key from second), '2settle:stripe/pi_1', 'under the same key, and the refunder knows that it is a second try');
select is((select public.refund_failed(id, token, 'charge_disputed', true) from second), true, 'Stripe refuses');
select is(pg_temp.standing() || ' ' || tests.owed(), 'failed 2 charge_disputed 2000 2000', 'it is owed, and an operator decides');
select is((select outcome from public.decide_refunds('{settle:stripe/pi_1}', 'skip', 'bob', 'paid in cash')), 'skipped', 'an operator skips it');
select is(tests.owed(), '0 0', 'the seller keeps the money');
select results_eq(
  $$ select actor, action, subject, reason, details ->> 'amount' from audit.audit_logs where action like 'refund_%' $$,
  $$ values ('bob', 'refund_skip', 'refund settle:stripe/pi_1', 'paid in cash', '2000') $$, 'and the log says who said so'
);
select is((select outcome from public.decide_refunds('{settle:stripe/pi_1}', 'skip', 'bob')), 'unchanged', 'a second time changes nothing');
select is((select outcome from public.decide_refunds('{void:none}', 'send', 'bob')), 'unknown', 'an unknown id');
select tests.refuses($$ select * from public.decide_refunds('{settle:stripe/pi_1}', 'keep', 'bob') $$, 'SL001', 'another action');

-- A part of an order that we refund makes the sum full: the other ticket goes too, though its webhook never comes.
rollback to taken;
select tests.pay(5, '{"id": "pi_5"}');
select tests.settle('funds', '{5,6}', '{}', 'pi_5');
select tests.outcomes(tests.ticket(5, 'ann', 5), tests.ticket(6, 'ann', 6));
select tests.apply_payment('refund.created', '{"id": "re_5", "payment_intent": "pi_5", "amount": 1000, "currency": "usd"}');
create temp table parted as select public.request_void(array[tests.claim_id(5)], true, 'bob') as id;
select public.void_order_tickets(id, jsonb_build_array(
  tests.ticket(5, 'ann', 5) || '{"payment_key": "stripe/pi_5", "unit_price": 1000, "currency": "usd"}')) from parted;
select is((select count(*)::int from public.confirmed_tickets), 1, 'one of two tickets is taken back');
select public.decide_refunds(array['void:' || tests.claim_id(5)], 'send', 'bob', 'she gets all of it');
select is(
  (select public.refund_sent(t.id, t.token, pg_temp.stripes(jsonb_build_object('id', 're_6', 'payment_intent', 'pi_5', 'amount', 1000,
     'metadata', jsonb_build_object('sluice_refund', t.refund_key)))) from public.refunds_take(10, 60) t), 'sent', 'and refunded, after the other''s worth had been elsewhere'
);
select is((select count(*)::int from public.confirmed_tickets), 0, 'now all has gone back, and the other ticket with it');

select * from finish();
rollback;
