-- A payment's state follows rank, then time, then arrival; nothing late takes it back.
begin;
select plan(22);

create function pg_temp.apply(p_type text, p_object jsonb default '{}', p_second int default 0) returns text
language sql as $$
  select tests.apply(p_type, p_object, '2026-03-01 12:00:00+00'::timestamptz + make_interval(secs => p_second));
$$;

create function pg_temp.state(p_key text default 'pi_1')
returns text
language sql
as $$
  select state::text from public.payments where object_id = p_key;
$$;

select is(pg_temp.apply('payment_intent.processing'), null, 'the first event of a payment has an effect');
select is(pg_temp.state(), 'processing', 'its state is what the event told');
select is(
  pg_temp.apply('payment_intent.created', '{}', 9), 'older than what is known',
  'a lower state is older, even when its clock says later'
);
select is(pg_temp.apply('payment_intent.succeeded'), null, 'a higher state counts, also within the same second');
select is(
  pg_temp.apply('payment_intent.payment_failed', '{}', 9), 'older than what is known', 'failed is below succeeded'
);
select is(pg_temp.state(), 'succeeded', 'and the state stays');
select is(
  pg_temp.apply('charge.succeeded', '{"id": "ch_1", "payment_intent": "pi_1"}', 1), 'already known',
  'the same state told again is nothing new'
);
select is(
  (select last_event_id from public.payments), (select 'evt_' || last_value from tests.arrivals),
  'though it is the newer word'
);
select is(
  pg_temp.apply('charge.succeeded', '{"id": "ch_1", "payment_intent": "pi_1"}', 0), 'older than what is known',
  'and told earlier it is older'
);
select is(
  (select count(*)::int from public.payments), 1, 'a charge that names its payment intent is the same payment'
);
select is(pg_temp.apply('payment_intent.canceled'), null, 'a cancellation counts');
select is(pg_temp.apply('payment_intent.succeeded', '{}', 99), 'older than what is known', 'nothing follows it');
select is(pg_temp.state(), 'canceled', 'a canceled payment stays canceled');

select is(
  pg_temp.apply('charge.succeeded', '{"id": "ch_2", "captured": false}'), null, 'an authorised charge has an effect'
);
select is(pg_temp.state('ch_2'), 'processing', 'but it is not paid; without a payment intent it is its own payment');
select is_empty($$ select from public.credit_ledger where object_id = 'ch_2' $$, 'so no user is credited');
select is(
  pg_temp.apply('charge.captured', '{"id": "ch_2", "captured": true, "amount_captured": 600}'), null,
  'a capture counts'
);
select results_eq(
  $$ select state::text, amount from public.payments where object_id = 'ch_2' $$,
  $$ values ('succeeded', 600::bigint) $$,
  'a capture is the payment, with what was captured'
);
select is(
  pg_temp.apply('checkout.session.completed', '{"id": "cs_1", "payment_intent": "pi_4", "payment_status": "unpaid"}'),
  null, 'an unpaid session has an effect'
);
select is(pg_temp.state('pi_4'), 'processing', 'an unpaid session waits for its money');
select is(
  pg_temp.apply('checkout.session.completed', '{"id": "cs_2", "payment_intent": "pi_5", "payment_status": "no_payment_required"}'),
  'tells nothing about a payment', 'an event that no rule describes is skipped'
);
select is_empty($$ select from public.payments where object_id = 'pi_5' $$, 'and leaves no payment behind');

select * from finish();
rollback;
