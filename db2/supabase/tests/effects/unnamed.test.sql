-- What names no payment moves no money: its payment intent or its charge tells the same, and nothing connects the two.
begin;
select plan(18);

-- Applies one event about the object, which names its user.
create function pg_temp.apply(p_type text, p_object jsonb) returns text
language sql as $$
  select tests.apply_payment(p_type, '{"currency": "usd", "amount": 900, "metadata": {"user_id": "ann"}}' || p_object);
$$;

create function pg_temp.skips(p_type text, p_object text, p_what text)
returns setof text
language plpgsql
as $$
begin
  return next is(
    pg_temp.apply(p_type, p_object::jsonb),
    'names no payment', p_what
  );
  return next is_empty('select from public.payments', 'and leaves nothing behind');
end
$$;

select pg_temp.skips('invoice.paid', '{"id": "in_1", "amount_paid": 900}', 'an invoice as since 2025-03-31 is skipped');
select pg_temp.skips(
  'checkout.session.completed', '{"id": "cs_1", "payment_status": "paid", "mode": "subscription", "amount_total": 900}',
  'so is the session of a subscription'
);
select pg_temp.skips(
  'checkout.session.async_payment_succeeded', '{"id": "cs_1", "mode": "subscription", "amount_total": 900}',
  'also when its money comes later'
);
select pg_temp.skips(
  'invoice.paid', '{"id": "in_5", "payments": {"data": [{"amount_paid": null, "payment": {"payment_intent": "pi_5"}}]}, "amount_paid": 900}',
  'so is an invoice whose one payment is not paid: its money came another way'
);
select pg_temp.skips('refund.created', '{"id": "re_1"}', 'so is a refund of nothing that is known');

select is(
  pg_temp.apply('invoice.paid', '{"id": "in_3", "payments": {"data": [{"payment": {}}, {"payment": {}}]}, "amount_paid": 900}'),
  'names several payments', 'an invoice with several payments is told by each of them'
);
select is(
  pg_temp.apply('invoice.paid', '{"id": "in_4", "payment_intent": "pi_4", "paid_out_of_band": true, "amount_paid": 900}'),
  'tells nothing about a payment', 'money that did not pass through Stripe is none of this ledger'
);
select is(
  (select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, jsonb_build_object('provider', 'stripe',
    'event_id', 'evt_thin', 'event_type', 'charge.succeeded', 'payload', p.payload)))), 'carries no object',
  'a payload like ' || p.payload::text || ' tells nothing'
) from unnest('{"{\"data\": {}}","{\"related_object\": {}}","{\"data\": {\"object\": null}}"}'::jsonb[]) p (payload);

select is(pg_temp.apply('charge.succeeded', '{"id": "ch_1"}'), null, 'a charge without a payment intent is a payment');
select is(
  pg_temp.apply('invoice.paid', '{"id": "in_2", "charge": "ch_1", "amount_paid": 900}'), 'already known',
  'an invoice that names the charge tells the same one'
);
select results_eq(
  $$ select object_id, amount from public.credit_ledger $$, $$ values ('ch_1', 900::bigint) $$, 'and does not credit twice'
);

select * from finish();
rollback;
