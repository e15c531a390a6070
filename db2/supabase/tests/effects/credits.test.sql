-- Money is counted once per fact, whichever events tell it.
begin;
select plan(18);

create function pg_temp.balance(p_user text default 'ann')
returns text
language sql
as $$
  select coalesce(string_agg(amount || ' ' || currency, ', '), 'nothing') from webhook.balance(p_user);
$$;

select is(pg_temp.balance(), 'nothing', 'a user of whom nothing was told has no balance');
select is(
  tests.apply('payment_intent.succeeded', '{"amount_received": 900, "currency": "USD"}'), null,
  'a payment has an effect'
);
select is(pg_temp.balance(), '900 usd', 'what was received is credited, not what was asked for, in lower case');
select lives_ok(
  $$ select tests.apply('charge.succeeded', '{"id": "ch_1", "payment_intent": "pi_1", "amount": 900}') $$,
  'the charge of the same payment does not contradict it'
);
select lives_ok(
  $$ select tests.apply('checkout.session.completed',
       '{"id": "cs_1", "payment_intent": "pi_1", "payment_status": "paid", "amount_total": 900}') $$,
  'nor is its session'
);
select lives_ok(
  $$ select tests.apply('invoice.paid', '{"id": "in_1", "payment_intent": "pi_1", "amount_paid": 900}') $$,
  'nor is its invoice'
);
select is(pg_temp.balance(), '900 usd', 'four events that tell one fact are one credit');
select is(
  tests.apply('charge.captured', '{"id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_captured": 950}'), null,
  'a payment that is captured again is worth more'
);
select is(
  tests.apply('charge.captured', '{"id": "ch_1", "payment_intent": "pi_1", "amount": 1000, "amount_captured": 930}'),
  'already known', 'a lower total is an older one'
);
select results_eq(
  $$ select business_key, amount::int from public.credit_ledger order by id $$,
  $$ values ('payment:pi_1:1', 900), ('payment:pi_1:2', 50) $$, 'the ledger has the difference'
);
select throws_ok(
  $$ select tests.apply('payment_intent.succeeded', '{"amount_received": 900, "currency": "eur"}') $$,
  'SL030', null, 'so is another currency'
);
select throws_ok(
  $$ select tests.apply('payment_intent.succeeded', '{"amount_received": 900, "metadata": {"user_id": "eve"}}') $$,
  'SL030', null, 'so is another user'
);
select is(pg_temp.balance('eve'), 'nothing', 'who gets nothing');
select is(
  tests.apply('charge.succeeded', '{"id": "ch_2", "amount": 50, "currency": "eur"}'), null, 'another payment comes'
);
select is(pg_temp.balance(), '50 eur, 950 usd', 'each currency adds up by itself');
select is(tests.apply('payment_intent.canceled', '{"id": "pi_3"}'), null, 'a third one is canceled');
select is(
  tests.apply('payment_intent.succeeded', '{"id": "pi_3", "amount_received": 7}'), null,
  'money told late is news, whatever the state'
);
select is(pg_temp.balance(), '50 eur, 957 usd', 'and counts');

select * from finish();
rollback;
