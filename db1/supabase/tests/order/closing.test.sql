-- The closer gets checkouts whose order is over or paid, under a lease, and what the provider said is kept.
begin;
select plan(33);

select tests.paid_pool('close', 9);
select tests.ask('close', u) from unnest('{ann,bob,cid,dan,eve}'::text[]) u;
create temp table o as select * from public.orders where pool_id = 'close';
select tests.checkout(tests.order_of('close', u)) from unnest('{ann,bob,cid,dan,eve}'::text[]) u;
select public.checkout_created(order_id, 1, 'cs_' || user_id, 'https://pay/') from o;

select is_empty('select * from public.take_closing(10, 60, false)', 'nothing is closed while its hold runs');
select tests.order_over(order_id) from o where user_id in ('ann', 'bob', 'cid');
update public.checkouts set next_attempt_at = now() where order_id in (select order_id from o where user_id in ('ann', 'bob', 'cid'));
create temp table taken as select * from public.take_closing(10, 60, false);
select bag_eq(
  'select session_id, state, attempts, lease_token is not null from taken',
  $$ values ('cs_ann', 'open', 1, true), ('cs_bob', 'open', 1, true), ('cs_cid', 'open', 1, true) $$,
  'those whose hold is over are taken'
);
select is_empty('select * from public.take_closing(10, 60, false)', 'and by one closer at a time');
create function pg_temp.close(p_user text, p_state text, p_payment text default null) returns boolean
language sql as $$
  select public.close_checkout(order_id, n, lease_token, p_state, p_payment) from taken where session_id = 'cs_' || p_user;
$$;

select tests.refuses($$ select pg_temp.close('ann', 'open') $$, 'SL001', 'a state that closes nothing');
select tests.refuses($$ select pg_temp.close('ann', 'complete') $$, 'SL001', 'complete without a payment');
select is(
  (select public.close_checkout(order_id, n, gen_random_uuid(), 'expired', null) from taken where session_id = 'cs_ann'), false,
  'a lease that is lost changes nothing'
);
select is(pg_temp.close('ann', 'expired'), true, 'a session that is closed');
select is(pg_temp.close('ann', 'expired'), false, 'is closed once');
select is(pg_temp.close('bob', 'processing'), true, 'a payment on its way');
select is(pg_temp.close('cid', 'complete', 'pi_cid'), true, 'a session that was paid');
select results_eq(
  $$ select session_id, state, payment_intent, next_attempt_at = 'infinity', next_attempt_at > clock_timestamp() + interval '20 seconds'
     from public.checkouts where session_id in ('cs_ann', 'cs_bob', 'cs_cid') order by 1 $$,
  $$ values ('cs_ann', 'expired', null, true, true), ('cs_bob', 'processing', null, false, true),
    ('cs_cid', 'complete', 'pi_cid', false, false) $$,
  'what is closed is done with; a payment on its way is looked at later, a paid one at once'
);
select is(
  (select hold_until from tests.order_of('close', 'cid')), null, 'an order whose session was paid has no end while it is undecided'
);
select is((public.get_claim((tests.order_of('close', 'cid')).order_id))."order" ->> 'status', 'paying', 'it is paying');
select is(public.expire_holds(), 2, 'the other two end: a payment on its way keeps no slot');
select is(
  (select array_agg(tests.states(order_id) order by user_id) from o where user_id in ('ann', 'bob', 'cid')),
  '{expired,expired,held}', 'and the paid one stays'
);
select results_eq(
  $$ select session_id, state from public.take_closing(10, 60, false) $$, $$ values ('cs_cid', 'complete') $$,
  'what was paid and has no decision is taken again'
);

savepoint pulled;
select tests.settle(tests.payment(tests.order_of('close', 'cid'), 'pi_cid'));
select is(
  (select public.checkout_later(order_id, n, lease_token, 5) from public.checkouts where session_id = 'cs_cid'), true,
  'a closer that has pulled a payment wants to look again'
);
select is(
  (select next_attempt_at from public.checkouts where session_id = 'cs_cid'), 'infinity', 'and does not where it was decided meanwhile'
);
rollback to pulled;

select is(
  (select public.checkout_later(order_id, n, lease_token, 60) from public.checkouts where session_id = 'cs_cid'), true,
  'a closer may look later'
);
select is_empty('select * from public.take_closing(10, 60, false)', 'and no one looks before');
select is(
  (select public.checkout_later(order_id, n, gen_random_uuid(), 0) from public.checkouts where session_id = 'cs_cid'), false,
  'with a lease that is lost nothing changes'
);
select is(tests.settle(tests.payment(tests.order_of('close', 'cid'), 'pi_cid')), 'funds in_time', 'the decision comes');
update public.checkouts set next_attempt_at = least(next_attempt_at, now()) where session_id = 'cs_cid' and next_attempt_at < 'infinity';
select is_empty('select * from public.take_closing(10, 60, false)', 'and the checkout is done with');

-- Paid by a webhook, while the session is open here.
select tests.settle(tests.payment(tests.order_of('close', 'dan'), 'pi_dan'));
select results_eq(
  $$ select session_id from public.take_closing(10, 60, false) $$, array['cs_dan'], 'the session of an order that is paid is closed at once'
);
select is(
  (select public.close_checkout(order_id, n, lease_token, 'complete', 'pi_dan') from public.checkouts where session_id = 'cs_dan'),
  true, 'its payment is known'
);
select is(tests.states((tests.order_of('close', 'dan')).order_id), 'queued', 'and it stays paid');
-- A door whose create failed for good gives the attempt up and begins another.
select public.close_checkout(order_id, 1, null, 'expired', null) from o where user_id = 'eve';
select is((tests.checkout(tests.order_of('close', 'eve'))).n, 2, 'after a checkout that was given up comes the next');

-- Checkouts without an answer of the provider stand in a line of their own.
select tests.order_over(order_id) from o where user_id = 'eve';
update public.checkouts set next_attempt_at = now() where order_id = (select order_id from o where user_id = 'eve') and n = 2;
select is_empty('select * from public.take_closing(10, 60, false)', 'a lost session is not among the known ones');
create temp table lost as select * from public.take_closing(10, 60, true);
select results_eq(
  'select n, state, session_id from lost', $$ values (2, 'creating', null::text) $$, 'it is among the lost ones, by its lease'
);
select is_empty('select * from public.take_closing(10, 60, true)', 'and taken once');
select is(
  (select public.close_checkout(order_id, n, lease_token, 'expired', null) from lost), true, 'it is closed like the others'
);

select * from finish();
rollback;
