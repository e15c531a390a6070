-- A refund that an operator skips is forfeited as far as money is left, is not owed again, and a refund elsewhere takes it back.
begin;
select plan(20);

create function pg_temp.skip() returns text language sql as $$
  select d.outcome from public.decide_refunds('{settle:stripe/pi_1}', 'skip', 'bob', 'by bank transfer') d
$$;
create function pg_temp.kept() returns bigint language sql as $$
  select coalesce(-sum(c.amount), 0) from public.credit_ledger c where c.kind = 'forfeit'
$$;

select tests.pay(1);
select tests.settle('refund', '{1,2}', '{"refund_by": "operator"}');
select is(tests.owed(), '2000 2000', 'a payment bought nothing, and waits for an operator');
savepoint review;

select is(tests.refund_outside('re_1', 1500), null, 'a part went back by the dashboard');
select is(pg_temp.skip(), 'skipped', 'the rest is skipped');
select is(pg_temp.kept() || ' ' || tests.owed(), '500 0 0', 'the seller keeps what was left');

rollback to review;
select tests.dispute('lost', -500);
select pg_temp.skip();
select is(pg_temp.kept() || ' ' || tests.owed(), '1500 0 0', 'nor does the seller keep what a dispute took');

rollback to review;
select tests.dispute('needs_response', -2000);
select is(pg_temp.skip(), 'skipped', 'it is skipped while the bank has the money');
select tests.dispute('won', -2000, 2000);
select is(tests.owed(), '0 0', 'nothing is owed when it comes back');

rollback to review;
select is(pg_temp.skip(), 'skipped', 'it is skipped');
select is(tests.owed(), '0 0', 'and nothing is owed');
savepoint skipped;
select is(tests.dispute('needs_response', -2000), null, 'a dispute takes the money');
select is(tests.dispute('won', -2000, 2000), null, 'and is won');
select is(tests.owed(), '0 0', 'nothing is owed again');

rollback to skipped;
select is(tests.refund_outside('re_1', 2000), null, 'the refund in the dashboard is told after the skip');
select is(pg_temp.kept() || ' ' || tests.owed(), '0 0 0', 'the seller keeps nothing, and the buyer owes nothing');
select is(tests.refund_outside('re_1', 2000), 'already known', 'told again');
select is(pg_temp.kept(), 0::bigint, 'it counts once');
select is(tests.refund_outside('re_1', 2000, 'failed'), null, 'it fails');
select is(
  (select r.id || ' ' || r.amount || ' ' || r.state from public.refunds_due r where r.state <> 'skipped') || ' ' || tests.owed(),
  'back:stripe/pi_1:3 2000 review 2000 2000', 'the money is owed again, and an operator decides'
);

rollback to skipped;
select tests.refund_outside('re_1', 700);
select is(pg_temp.kept() || ' ' || tests.owed(), '1300 0 0', 'a part in the dashboard lessens what the seller keeps');

-- One ticket of two: the other goes on being worth its price.
rollback to review;
select tests.pay(3, '{"id": "pi_3"}');
select tests.settle('funds', '{3,4}', '{"refund_by": "operator"}', 'pi_3');
select tests.outcomes(tests.ticket(3, 'ann', 3), tests.ticket(4, 'ann', 4));
select public.void_order_tickets(
  public.request_void(array[tests.claim_id(3)], true, 'bob'),
  jsonb_build_array(tests.ticket(3, 'ann', 3) || '{"payment_key": "stripe/pi_3", "unit_price": 1000, "currency": "usd"}'));
select tests.apply_payment('refund.created', '{"id": "re_3", "payment_intent": "pi_3", "amount": 1000, "currency": "usd"}');
select public.decide_refunds(array['void:' || tests.claim_id(3)], 'skip', 'bob', 'refunded in the dashboard');
select is(
  (select sum(c.amount) from public.credit_ledger c where c.object_id = 'pi_3'), 0::numeric,
  'the refund of one ticket in the dashboard is not forfeited from the other'
);

select * from finish();
rollback;
