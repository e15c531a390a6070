-- What a payment is for is decided once: the first rule that fits, and the same answer ever after.
begin;
select plan(31);

select tests.paid_pool('sale', 9, '{"max_quantity": 3}');
select tests.ask('sale', 'ann', 2), tests.ask('sale', 'bob'), tests.ask('sale', 'cid'), tests.ask('sale', 'dan');
create temp table o as select * from public.orders where pool_id = 'sale';

-- Refused, or not for us: nothing is kept.
select tests.refuses($$ select public.settle_payment('{}', false) $$, 'SL001', 'a payment without a key');
select tests.refuses(
  $$ select tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_1', '{"payment_key": "other/pi_1"}')) $$, 'SL001',
  'a key of another tenant than the payment''s'
);
create temp table before as select tests.state() as state;
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_1', '{"tenant": "stripe:shop"}')), 'ignored tenant',
  'another tenant''s payment is ignored'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_1', '{"livemode": false}'), true), 'ignored tenant',
  'so is one of the test mode'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_1', jsonb_build_object('claim_id', gen_random_uuid()))),
  'unknown no_order', 'an order that is not here may come'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_1', jsonb_build_object(
    'claim_id', gen_random_uuid(), 'tenant', 'paypal')), true),
  'ignored no_order', 'a tenant that no pool sells for has no order'
);
select is(tests.state(), (select state from before), 'and nothing is kept of all that');

-- Decisions.
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_lost', jsonb_build_object('claim_id', 'nonsense')), true),
  'refund unknown_order', 'an order that did not come'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_2', '{"user_id": "bob"}')), 'refund other_user', 'another user''s money'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_3', '{"verified": "false"}')), 'refund other_user',
  'a user of the same name and another namespace is another user'
);
select is(tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_4', '{"amount": 1999}')), 'refund amount', 'too little');
select is(tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_5', '{"amount": 2001}')), 'refund amount', 'too much');
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_6', '{"currency": "usd"}')), 'refund currency', 'other money'
);
select is(tests.states((tests.order_of('sale', 'ann')).order_id), 'held held', 'the claims stay held');

create temp table bought as
select * from public.settle_payment(tests.payment(tests.order_of('sale', 'ann'), 'pi_7', '{"currency": "EUR"}'), false);
select results_eq(
  $$ select decision, reason, order_id, is_own, refund_by from bought $$,
  $$ select 'funds', 'in_time', order_id, false, 'sluice' from o where user_id = 'ann' $$, 'the right payment buys'
);
select results_eq(
  $$ select b.claim_ids from bought b $$,
  $$ select array_agg(c.claim_id order by c.claim_id <> c.order_id, c.claim_id) from public.claims c where c.user_id = 'ann' and c.pool_id = 'sale' $$,
  'all claims of the order'
);
create temp table after as select tests.state() as state;
select results_eq(
  $$ select * from public.settle_payment(tests.payment(tests.order_of('sale', 'ann'), 'pi_7', '{"amount": 1}'), true) $$,
  $$ select * from bought $$, 'the second time it is answered what was decided'
);
select is(tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_4')), 'refund amount', 'a refund stays one, too');
select is(tests.state(), (select state from after), 'and nothing changes');

select is(tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_8')), 'refund second_payment', 'a second payment');
select results_eq(
  $$ select payment_key, hold_until, ended_at from public.orders where order_id = (select order_id from bought) $$,
  $$ values ('stripe/pi_7', null::timestamptz, null::timestamptz) $$, 'the order has one payment, and no end'
);
select results_eq(
  $$ select c.state::text, c.paid, q.message from public.claims c join pgmq.q_intake_queue q on q.msg_id = c.msg_id
     where c.order_id = (select order_id from bought) order by c.claim_id $$,
  $$ select 'queued', true, jsonb_build_object('claim_id', c.claim_id, 'pool_id', 'sale', 'resource_id', c.slot_id,
       'user_id', 'ann', 'verified', true, 'order_id', c.order_id, 'state', 'queued')
     from public.claims c where c.order_id = (select order_id from bought) order by c.claim_id $$,
  'its claims are on their way, and their messages name the order'
);
select is(
  (select q.msg_id >> 40 from pgmq.q_intake_queue q where q.message ->> 'order_id' = (select order_id::text from bought) limit 1),
  (select lane::bigint from public.engine_config where pool_id = 'sale'), 'in the pool''s lane'
);

-- Past the hold, and not freed yet.
select tests.order_over(order_id, '1 hour') from o where user_id = 'bob';
select is(tests.settle(tests.payment(tests.order_of('sale', 'bob'), 'pi_9')), 'funds in_time', 'held is held');
-- Through a session of ours.
select tests.checkout(tests.order_of('sale', 'cid'));
select results_eq(
  $$ select s.decision, s.is_own from tests.order_of('sale', 'cid') o, public.settle_payment(
       tests.payment(o, 'pi_10', jsonb_build_object('checkout', o.order_id || ':1', 'amount', 1)), false) s $$,
  $$ values ('refund', true) $$, 'a payment through our session is our own'
);
select results_eq(
  $$ select s.is_own from tests.order_of('sale', 'cid') o, public.settle_payment(
       tests.payment(o, 'pi_11', jsonb_build_object('checkout', o.order_id || ':2', 'amount', 1)), false) s $$,
  $$ values (false) $$, 'one that names no session of ours is not'
);
-- Named by another claim of the order.
select tests.ask('sale', 'eve', 2);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'eve'), 'pi_12', jsonb_build_object('claim_id', (
    select c.claim_id from public.claims c where c.user_id = 'eve' and c.claim_id <> c.order_id)))),
  'funds in_time', 'any claim of the order names it'
);
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'dan'), 'pi_13', '{"verified": null}')), 'funds in_time',
  'a payment that a server of the owner''s made is of a verified user'
);
-- A claim of a pool without payment.
insert into public.inventory_slots (pool_id) values ('gratis');
select public.claim_resource_and_queue('gratis', 'ann');
select is(
  tests.settle(tests.payment(tests.order_of('sale', 'ann'), 'pi_14', jsonb_build_object(
    'claim_id', (tests.claim_of('gratis', 'ann')).claim_id)), true),
  'ignored no_order', 'what is not paid for here is not ours to judge'
);

select * from finish();
rollback;
