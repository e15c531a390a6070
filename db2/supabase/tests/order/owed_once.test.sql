-- A refund that Stripe has made and that is told by the charge's total alone counts once, although its row is still open.
begin;
select plan(5);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
create function pg_temp.owe(p_id text) returns void language sql as $$
  select webhook.owe(p, p_id, 1000, 'a void', 'due', null) from webhook.lock_payment('stripe/pi_1') p
$$;
create function pg_temp.total(p_refunded int) returns text language sql as $$
  select tests.apply_payment('charge.refunded', jsonb_build_object('id', 'ch_1', 'object', 'charge', 'payment_intent', 'pi_1',
    'amount', 2000, 'amount_captured', 2000, 'amount_refunded', p_refunded, 'currency', 'usd'))
$$;
create function pg_temp.owed() returns text language sql as $$
  select string_agg(concat_ws(' ', r.id, r.amount, r.state), ', ' order by r.id) from public.refunds_due r
$$;
select tests.pay(1);
select pg_temp.owe('void:a');
savepoint owed;

select is((select count(*)::int from public.refunds_take(10, 60)), 1, 'a refunder has the first in hand');
select pg_temp.total(1000);
select pg_temp.owe('void:b');
select is(pg_temp.owed(), 'void:a 1000 due, void:b 1000 due', 'the event may tell of that one, so the second is owed in full');
select pg_temp.total(2000);
select is(pg_temp.owed(), 'void:a 1000 done, void:b 1000 done', 'nothing is owed when all went back');

rollback to owed;
select pg_temp.total(1000);
select pg_temp.owe('void:b');
select is(pg_temp.owed(), 'void:a 1000 due', 'no refunder has begun the first: the seller gave the other half back at Stripe');

rollback to owed;
select pg_temp.owe('void:b');
select pg_temp.owe('void:c');
select is(pg_temp.owed(), 'void:a 1000 due, void:b 1000 due', 'no more is owed than was paid');

select * from finish();
rollback;
