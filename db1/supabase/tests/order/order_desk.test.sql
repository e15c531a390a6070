-- What operators see of orders: a list, what waits, and what reconcile asks.
begin;
select plan(30);

create function pg_temp.level(p_name text) returns numeric language sql as $$
  select (intake.order_level() ->> p_name)::numeric
$$;
create function pg_temp.listed(p_pool text default null, p_user text default null, p_status text default null) returns text
language sql as $$
  select string_agg(l.user_id, ' ') from public.order_list(p_pool, p_user, p_status) l
$$;

select is(pg_temp.listed(), null, 'no orders');
select is(
  intake.order_level(), '{"held": 0, "paying": 0, "past_bound": 0, "past_bound_sec": null, "to_close": 0}'::jsonb, 'nothing waits'
);
select tests.paid_pool('fair', 20, '{"max_quantity": 3}');
select tests.paid_pool('hall', 5);
select tests.ask('fair', 'ann', 2), tests.ask('fair', 'bob'), tests.ask('hall', 'ann');
select tests.settle(tests.payment(tests.order_of('fair', 'bob'), 'pi_b'));

select is(pg_temp.listed(), 'ann bob ann', 'orders, newest first');
select is(pg_temp.listed('fair'), 'bob ann', 'of a pool');
select is(pg_temp.listed(p_user => 'ann'), 'ann ann', 'of a user');
select is(pg_temp.listed(p_status => 'paid'), 'bob', 'in a status');
select is(pg_temp.listed('hall', 'ann', 'paid'), null, 'or in none that matches all of it');
select results_eq(
  $$ select order_id, pool_id, status, seats, unit_price, amount, currency, payment_key from public.order_list('fair', 'ann') $$,
  $$ select order_id, 'fair', 'held', 2, 1000::bigint, 2000::bigint, 'eur', null::text from tests.order_of('fair', 'ann') $$,
  'with what it costs'
);
select is(
  (select ordered_at from public.order_list('fair', 'ann')),
  (select claimed_at from public.claims where claim_id = (tests.order_of('fair', 'ann')).order_id), 'and when it was made'
);
select results_eq(
  $$ select n.order_id from public.order_list(p_limit => 1) f cross join lateral public.order_list(p_after => f.order_id, p_limit => 1) n $$,
  $$ select (tests.order_of('fair', 'bob')).order_id $$, 'page by page'
);

select is(pg_temp.level('held'), 2.0, 'orders that are held');
select tests.order_over((tests.order_of('hall', 'ann')).order_id, '61 seconds');
select is(pg_temp.level('past_bound'), 0.0, 'a hold within its grace, and what a worker takes, is in order');
select tests.order_over((tests.order_of('hall', 'ann')).order_id, '70 seconds');
select is(pg_temp.level('past_bound'), 1.0, 'beyond it is not');
select cmp_ok(pg_temp.level('past_bound_sec'), '>=', 10.0, 'and is told for how long');
select public.expire_holds();
select is(pg_temp.level('past_bound'), 0.0, 'until it is freed');

select public.checkout_created(c.order_id, c.n, 'cs_1', 'https://pay/1') from tests.checkout(tests.order_of('fair', 'ann')) c;
select is(pg_temp.level('to_close'), 0.0, 'a session of a running hold is left alone');
select results_eq(
  $$ select session_id, order_id, is_over from public.find_checkouts('{cs_1,cs_2}') $$,
  $$ select 'cs_1', order_id, false from tests.order_of('fair', 'ann') $$, 'known sessions of live orders'
);
select tests.settle(tests.payment(tests.order_of('fair', 'ann'), 'pi_other'));
select is(pg_temp.level('to_close'), 1.0, 'one of an order that was paid otherwise has to be closed');
update public.orders set grace_until = now() - interval '61 seconds' where user_id = 'ann';
select is((select is_over from public.find_checkouts('{cs_1}')), true, 'and must not be open a minute after the grace');

-- A session that was paid, and whose payment has no effect.
select tests.ask('hall', 'cid');
select public.checkout_created(c.order_id, c.n, 'cs_2', 'https://pay/2') from tests.checkout(tests.order_of('hall', 'cid')) c;
select tests.order_over((tests.order_of('hall', 'cid')).order_id);
update public.checkouts set next_attempt_at = now() where session_id = 'cs_2';
select public.close_checkout(k.order_id, k.n, k.lease_token, 'complete', 'pi_2')
from public.take_closing(10, 60, false) k where k.session_id = 'cs_2';
select public.checkout_later(k.order_id, k.n, k.lease_token, 300) from public.take_closing(10, 60, false) k;
select is(pg_temp.level('paying'), 1.0, 'a session that is paid waits for its decision');
select is(pg_temp.level('to_close'), 1.0, 'and is to be looked at, although it is not due in this instant');
select is(pg_temp.level('past_bound'), 0.0, 'within a minute that is in order');
update public.checkouts set completed_at = completed_at - interval '90 seconds' where session_id = 'cs_2';
select is(pg_temp.level('past_bound'), 1.0, 'after a minute it is not');
select cmp_ok(pg_temp.level('past_bound_sec'), '>=', 30.0, 'and is told for how long');
select tests.settle(tests.payment(tests.order_of('hall', 'cid'), 'pi_2'));
select is(pg_temp.level('past_bound'), 0.0, 'until it is decided');

select set_eq(
  $$ select public.decided_payments('{stripe/pi_b,stripe/pi_other,stripe/pi_none}') $$, '{stripe/pi_b,stripe/pi_other}'::text[],
  'payments that have a decision'
);
select results_eq(
  $$ select * from public.paid_pools() $$, $$ values ('fair', 'stripe', true), ('hall', 'stripe', true) $$, 'pools that are paid for'
);
select is((select count(*)::int from public.order_audit((tests.order_of('fair', 'bob')).order_id)), 0, 'nothing was done to an order');
insert into audit.audit_logs (actor, action, subject, details)
select 'olga', 'reconcile_fix', 'slot x', jsonb_build_object('ended_claim_id', (tests.order_of('fair', 'bob')).order_id);
select is((select actor from public.order_audit((tests.order_of('fair', 'bob')).order_id)), 'olga', 'or it is told');
select is(public.live_sample() -> 'orders' ->> 'held', '0', 'the live view has them too');

select * from finish();
rollback;
