-- An event that no retry can mend raises SL030 with the reason, and nothing changes.
begin;
select plan(39);

-- Everything that an event could change, as one value.
create function pg_temp.traces()
returns bigint
language sql
as $$
  select (select count(*) from public.payments) + (select count(*) from public.credit_ledger)
    + (select count(*) from public.payment_refunds) + (select count(*) from public.payment_transactions);
$$;

create function pg_temp.refuses(p_object text, p_fault text, p_type text default 'payment_intent.succeeded')
returns setof text
language plpgsql
as $$
begin
  return next throws_ok(format('select tests.apply(%L, %L)', p_type, p_object), 'SL030', p_fault,
    p_type || ' with ' || p_object || ' is refused');
  return next is(pg_temp.traces(), 0::bigint, 'and leaves nothing behind');
end
$$;

select pg_temp.refuses(jsonb_build_object('metadata', jsonb_build_object('user_id', repeat('x', 201)))::text,
  'metadata.user_id is longer than 200 characters');
select pg_temp.refuses('{"id": null}', 'no id of a payment');
select pg_temp.refuses('{"payment_intent": {"id": "pi_1"}}', 'no id of a payment');
select pg_temp.refuses('{"amount": null}', 'no amount_received');
select pg_temp.refuses('{"payment_intent": "pi_1"}', 'no amount_total', 'checkout.session.async_payment_succeeded');
select pg_temp.refuses('{"amount": -1}', 'amount is not a whole number');
select pg_temp.refuses('{"amount": 1.5}', 'amount is not a whole number');
select pg_temp.refuses('{"amount": "1000"}', 'amount is not a whole number');
select pg_temp.refuses('{"amount": 1000000000000001}', 'amount is above 10^15');
select pg_temp.refuses('{"amount": 1e400}', 'amount is above 10^15');
select pg_temp.refuses('{"amount": {"value": 1}}', 'amount is not a whole number');
select pg_temp.refuses('{"amount": "x", "amount_received": 900}', 'amount is not a whole number');
select pg_temp.refuses('{"amount_refunded": -1}', 'amount is not a whole number', 'charge.refunded');
select pg_temp.refuses('{"payment_intent": "pi_1", "amount": "x"}', 'amount is not a whole number', 'refund.created');
select pg_temp.refuses('{"currency": null}', 'no currency');
select pg_temp.refuses('{"currency": "us"}', 'currency is not three letters');
select pg_temp.refuses('{"currency": "us1"}', 'currency is not three letters', 'payment_intent.created');

-- Which refunds count depends on when they were told. The time of arrival would make a late event the newest.
select throws_ok(format($$
  select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, jsonb_build_object('provider', 'stripe',
    'event_id', 'evt_1', 'event_type', 'charge.refunded', 'arrival', 1, 'received_at', now(), 'payload', jsonb_build_object(
      'created', %L::jsonb, 'data', '{"object": {"id": "ch_1", "amount": 900, "amount_refunded": 100, "currency": "usd"}}'::jsonb
  ))))$$, created), 'SL030', 'created is not a time', 'a time of ' || created || ' is refused')
from unnest(array['"soon"', '-1', '1654012591835']) created;
select is(tests.apply('payment_intent.succeeded', '{"amount": 1000000000000000}'), null, 'the largest is taken');
select is(tests.apply('payment_intent.succeeded', '{"id": "pi_0", "amount": 0}'), null, 'and so is none at all');

select * from finish();
rollback;
