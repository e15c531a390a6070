-- Payments that buy what is held, many at a time: all others are left to settle_payment, and spoil nothing.
begin;
select plan(25);

select tests.refuses($$ select public.settle_payments('"pi_1"') $$, '22023', 'what is not a list');
insert into public.inventory_slots (pool_id) select 'sale' from generate_series(1, 12);
insert into public.inventory_slots (pool_id) select 'other' from generate_series(1, 2);
insert into public.engine_config (pool_id, confirm_by, price, currency, payment_tenant, hold_sec, max_quantity)
values ('sale', 'payment', 1000, 'eur', 'stripe', 600, 2), ('other', 'payment', 300, 'usd', 'stripe:b', 600, 2);
select tests.ask('sale', u, 2) from unnest('{ann,bob,cid,dan,eve}'::text[]) u;
select tests.ask('other', 'ann', 1);
select tests.checkout(tests.order_of('sale', 'bob'));

create temp table facts (nth int, fact jsonb);
insert into facts values
  (1, tests.payment(tests.order_of('sale', 'ann'), 'pi_ann')),
  (2, tests.payment(tests.order_of('sale', 'bob'), 'pi_bob',
    jsonb_build_object('checkout', (tests.order_of('sale', 'bob')).order_id || ':1', 'currency', 'EUR'))),
  (3, tests.payment(tests.order_of('other', 'ann'), 'pi_1', '{"tenant": "stripe:b"}')),
  (4, tests.payment(tests.order_of('sale', 'cid'), 'pi_short', '{"amount": 1999}')),
  (5, tests.payment(tests.order_of('sale', 'cid'), 'pi_usd', '{"currency": "usd"}')),
  (6, tests.payment(tests.order_of('sale', 'cid'), 'pi_test', '{"livemode": false}')),
  (7, tests.payment(tests.order_of('sale', 'cid'), 'pi_user', '{"user_id": "bob"}')),
  (8, tests.payment(tests.order_of('sale', 'cid'), 'pi_text', '{"amount": "2000"}')),
  (9, tests.payment(tests.order_of('sale', 'cid'), 'pi_mode', '{"livemode": "no"}')),
  (10, tests.payment(tests.order_of('sale', 'cid'), 'pi_key', '{"payment_key": "paypal/pi_key"}')),
  (11, tests.payment(tests.order_of('sale', 'cid'), 'pi_none', '{"claim_id": "nonsense"}')),
  (12, '{}');
create temp table settled as select s.* from public.settle_payments((select jsonb_agg(fact order by nth) from facts)) s;
select results_eq(
  $$ select payment_key, decision, reason, is_own, refund_by, cardinality(claim_ids) from settled order by payment_key $$,
  $$ values ('stripe/pi_ann', 'funds', 'in_time', false, 'sluice', 2), ('stripe/pi_bob', 'funds', 'in_time', true, 'sluice', 2),
    ('stripe:b/pi_1', 'funds', 'in_time', false, 'sluice', 1) $$, 'those that are right buy, and of the others nothing is said'
);
select is((select count(*)::int from public.order_payments), 3, 'nothing else is decided');
select tests.refuses($$
  insert into public.order_payments (payment_key, order_id, decision, reason, is_own)
  select 'stripe/pi_more', p.order_id, 'funds', 'in_time', false from public.order_payments p where p.payment_key = 'stripe/pi_ann'
$$, '23505', 'a second payment that buys the same order');
select tests.refuses($$
  insert into public.order_payments (payment_key, order_id, decision, reason, is_own)
  values ('stripe/pi_ann', (tests.order_of('sale', 'cid')).order_id, 'funds', 'in_time', false)
$$, '23505', 'a payment that buys a second order');
select is(tests.states((tests.order_of('sale', 'cid')).order_id), 'held held', 'and the order of the wrong ones is held');
select results_eq(
  $$ select payment_key, hold_until from public.orders where payment_key is not null order by payment_key $$,
  $$ values ('stripe/pi_ann', null::timestamptz), ('stripe/pi_bob', null), ('stripe:b/pi_1', null) $$, 'each order has its payment'
);
select results_eq(
  $$ select c.user_id::text, c.state::text, c.paid, q.message, (q.msg_id >> 40)::int from public.claims c
     join pgmq.q_intake_queue q on q.msg_id = c.msg_id order by c.claim_id $$,
  $$ select c.user_id::text, 'queued', true, jsonb_build_object('claim_id', c.claim_id, 'pool_id', c.pool_id, 'resource_id', c.slot_id,
       'user_id', c.user_id, 'verified', true, 'order_id', c.order_id, 'state', 'queued'), e.lane
     from public.claims c join public.engine_config e on e.pool_id = c.pool_id
     where c.order_id in (select order_id from settled) order by c.claim_id $$,
  'its claims are on their way, each in the lane of its pool'
);
select results_eq(
  $$ select state, next_attempt_at <= clock_timestamp() from public.checkouts $$, $$ values ('creating', true) $$,
  'the session of a paid order is looked at'
);

create temp table before as select tests.state() as state;
select set_eq(
  $$ select * from public.settle_payments((select jsonb_agg(fact || '{"amount": 1}') from facts where nth <= 3)) $$,
  $$ select * from settled $$, 'a second time it is answered what was decided'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select is(
  (select string_agg(tests.settle(fact), ', ' order by nth) from facts where nth in (4, 5, 6, 7)),
  'refund amount, refund currency, ignored tenant, refund other_user', 'what was left is decided by itself'
);
select tests.refuses(format('select public.settle_payment(%L, false)', fact), 'SL001', 'or refused: ' || (fact ->> 'payment_key'))
from facts where nth in (8, 9, 10);

-- Two payments of one order, and one payment that names two.
select is(
  (select string_agg(s.decision || ' ' || s.payment_key, ', ') from public.settle_payments(jsonb_build_array(
    tests.payment(tests.order_of('sale', 'dan'), 'pi_2'), tests.payment(tests.order_of('sale', 'dan'), 'pi_3'))) s),
  'funds stripe/pi_2', 'one of two buys'
);
select is(tests.settle(tests.payment(tests.order_of('sale', 'dan'), 'pi_3')), 'refund second_payment', 'the other goes back');
select is(
  (select count(*)::int from public.settle_payments(jsonb_build_array(
    tests.payment(tests.order_of('sale', 'cid'), 'pi_4'), tests.payment(tests.order_of('sale', 'eve'), 'pi_4'))) s),
  1, 'one payment buys one order'
);
-- Past the hold and not freed; then freed.
select tests.ask('sale', 'fay', 1);
select tests.order_over((tests.order_of('sale', 'fay')).order_id, '1 hour');
select public.expire_holds();
select is(
  (select count(*)::int from public.settle_payments(jsonb_build_array(tests.payment(tests.order_of('sale', 'fay'), 'pi_5')))), 0,
  'a late payment is left to settle_payment'
);

select * from finish();
rollback;
