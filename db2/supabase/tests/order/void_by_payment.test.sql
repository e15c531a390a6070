-- A full refund or a lost dispute takes the tickets back: at once where it is known which they are, else by the courier.
begin;
select plan(30);

create function pg_temp.refund(p_id text, p_amount int, p_object jsonb default '{}') returns text language sql as $$
  select tests.apply_payment('refund.created', jsonb_build_object(
    'id', p_id, 'payment_intent', 'pi_1', 'amount', p_amount, 'currency', 'usd') || p_object)
$$;
create function pg_temp.dispute(p_status text, p_moved int[]) returns text language sql as $$
  select tests.apply_payment('charge.dispute.closed', jsonb_build_object(
    'id', 'dp_1', 'payment_intent', 'pi_1', 'amount', 2000, 'currency', 'usd', 'status', p_status, 'balance_transactions', (
      select jsonb_agg(jsonb_build_object('id', 'txn_' || n, 'amount', m, 'currency', 'usd')) from unnest(p_moved) with ordinality as t (m, n))))
$$;
create function pg_temp.standing() returns text language sql as $$
  select (select count(*) from public.confirmed_tickets) || ' tickets, ' || (select count(*) from public.voided_tickets) || ' voided, '
    || coalesce((select o.state from public.claim_outbox o where o.id = 'void:stripe/pi_1'), 'not asked')
$$;

select is(tests.sell_two(), 'committed committed', 'two tickets are sold');
select is(tests.owed(), '0 0', 'nothing is owed');
savepoint sold;
select is(pg_temp.refund('re_1', 500), null, 'a part goes back');
select is(pg_temp.standing(), '2 tickets, 0 voided, not asked', 'and voids nothing');
select is(pg_temp.refund('re_2', 1500), null, 'the rest goes back');
select is(pg_temp.standing(), '0 tickets, 2 voided, due', 'the tickets are void, and the courier tells the intake');
select results_eq(
  $$ select right(claim_id::text, 1), right(resource_id::text, 1), pool_id, user_id, order_id, confirmed_at, voided_at, cause, outbox_id
     from public.voided_tickets order by 1 $$,
  $$ values ('1', '1', 'p', 'ann', tests.claim_id(1), now(), now(), 'refund', 'void:stripe/pi_1'),
    ('2', '2', 'p', 'ann', tests.claim_id(1), now(), now(), 'refund', 'void:stripe/pi_1') $$,
  'they stay readable'
);
select is(tests.owed(), '0 0', 'the purchase is taken back, and nothing is owed');
create temp table after as select tests.state() as state;
select is(pg_temp.refund('re_2', 1500), 'already known', 'told again');
select is(tests.state(), (select state from after), 'nothing changes');
select results_eq(
  $$ select v.claim_id, v.outcome from public.void_order_tickets('void:stripe/pi_1', tests.targets(1, 2)) v order by 1 $$,
  $$ values (tests.claim_id(1), 'already'), (tests.claim_id(2), 'already') $$, 'the courier finds them void'
);
select is(tests.state(), (select state from after), 'and changes nothing');

rollback to sold;
select is(pg_temp.dispute('needs_response', '{-2000}'), null, 'a dispute takes the money');
select is(pg_temp.standing(), '2 tickets, 0 voided, not asked', 'and no ticket');
select is(pg_temp.dispute('lost', '{-2000}'), null, 'lost');
select is(pg_temp.standing(), '0 tickets, 2 voided, due', 'it does');
select is((select min(cause) from public.voided_tickets) || ' ' || tests.owed(), 'dispute 0 0', 'nothing is owed');
select is(pg_temp.dispute('lost', '{-2000,2000}'), null, 'an appeal gives all of it back');
select is(tests.owed(), '2000 2000', 'it is owed');
select is(
  (select id || ' ' || state || ' ' || reason from public.refunds_due), 'back:stripe/pi_1:3 review money came back', 'by an operator''s word'
);

rollback to sold;
select pg_temp.refund('re_1', 2000);
select is(
  tests.apply_payment('refund.failed', '{"id": "re_1", "payment_intent": "pi_1", "amount": 2000, "currency": "usd"}'), null,
  'a refund fails after the tickets have gone'
);
select is((select state from public.refunds_due) || ' ' || tests.owed(), 'review 2000 2000', 'the money that came back is owed');

rollback to sold;
select pg_temp.refund('re_0', 1);
select pg_temp.refund('re_1', 2000);
select is(pg_temp.standing(), '0 tickets, 2 voided, due', 'more than all of it is all of it');

-- Before the intake has decided.
select is(tests.pay(3, '{"id": "pi_3"}'), null, 'another payment');
select tests.apply_payment('refund.created', '{"id": "re_3", "payment_intent": "pi_3", "amount": 2000, "currency": "usd"}');
select is(
  (select string_agg(id, ' ' order by id) from public.claim_outbox where payment_key = 'stripe/pi_3'),
  'settle:stripe/pi_3 void:stripe/pi_3', 'that goes back at once: the intake is asked both'
);
select is(
  (select fact ->> 'claim_id' || ' ' || (fact ->> 'cause') || ' ' || (fact ->> 'refund') || ' ' || (fact ->> 'livemode') from public.claim_outbox
   where id = 'void:stripe/pi_3'), tests.claim_id(3) || ' refund false true', 'with all that it has to know'
);
-- The refund overtakes its payment.
select is(
  tests.apply_payment('refund.created', '{"id": "re_4", "payment_intent": "pi_4", "amount": 2000, "currency": "usd"}'), null,
  'a refund comes before its payment'
);
select is((select count(*)::int from public.claim_outbox where payment_key = 'stripe/pi_4'), 0, 'and asks nothing yet');
select tests.pay(4, '{"id": "pi_4"}');
select is(
  (select string_agg(kind, ' ' order by id) from public.claim_outbox where payment_key = 'stripe/pi_4'), 'settle void',
  'the payment finds itself gone'
);
select is((select balance.amount from webhook.balance('ann') balance), 0::bigint, 'and it is worth nothing');

select * from finish();
rollback;
