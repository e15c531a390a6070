-- A ledger that was taken over has debited something, for refunds or disputes. What Stripe tells afterwards adds up all the same.
begin;
select plan(23);

-- A payment of 1000 of which the ledger has debited this much, until noon of the first day.
create function pg_temp.adopt(p_payment text, p_debited int) returns void
language sql as $$
  insert into public.credit_ledger (created_at, user_id, amount, currency, kind, provider, object_id, event_id, business_key)
  values ('2026-03-01 10:00Z', 'ann', 1000, 'usd', 'payment', 'stripe', p_payment, 'evt_paid_' || p_payment, 'adopted:evt_paid_' || p_payment),
    ('2026-03-01 12:00Z', 'ann', -p_debited, 'usd', 'refund', 'stripe', p_payment, 'evt_debit_' || p_payment, 'adopted:evt_debit_' || p_payment);
  insert into public.payments (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, currency, captured,
    refunded, adopted, adopted_until)
  values ('stripe', p_payment, 'ann', 'succeeded', '2026-03-01 10:00Z', 0, 'evt_paid_' || p_payment, 1000, 'usd', 1000, p_debited,
    p_debited, '2026-03-01 12:00Z');
$$;

-- Tells something about a payment on the second day, and returns what the payment is worth then.
create function pg_temp.tell(
  p_payment text, p_type text, p_object jsonb, p_previous int default null, p_event_id text default null
) returns bigint
language plpgsql as $$
begin
  perform webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, jsonb_build_object(
    'provider', 'stripe', 'event_id', coalesce(p_event_id, 'evt_' || n), 'event_type', p_type, 'arrival', n, 'received_at', now(),
    'occurred_at', '2026-03-02 12:00Z'::timestamptz + make_interval(secs => n), 'payload', jsonb_build_object(
      'api_version', '2025-03-31.basil', 'data', jsonb_build_object(
        'object', '{"amount": 1000, "currency": "usd"}' || jsonb_build_object('payment_intent', p_payment) || p_object,
        'previous_attributes', case when p_previous is not null then jsonb_build_object('amount_refunded', p_previous) end))
  ))) from nextval('tests.arrivals') n;
  return (select sum(c.amount) from public.credit_ledger c where c.object_id = p_payment);
end
$$;

-- The day of a refund or a balance transaction.
create function pg_temp.on_day(p_day int, p_object jsonb) returns jsonb
language sql as $$
  select jsonb_build_object('created', extract(epoch from '2026-02-28 11:00Z'::timestamptz + make_interval(days => p_day))::bigint) || p_object;
$$;
create function pg_temp.moved(p_id text, p_day int, p_amount int) returns jsonb
language sql as $$
  select pg_temp.on_day(p_day, jsonb_build_object('id', p_id, 'amount', p_amount, 'currency', 'usd', 'type', 'adjustment'));
$$;
create function pg_temp.dispute(p_payment text, p_type text, p_status text, variadic p_moved jsonb[]) returns bigint
language sql as $$
  select pg_temp.tell(p_payment, 'charge.dispute.' || p_type, jsonb_build_object('id', 'dp_' || p_payment, 'amount', 400,
    'status', p_status, 'balance_transactions', to_jsonb(p_moved)));
$$;
create function pg_temp.charge_refunded(p_payment text, p_total int, p_previous int default null) returns bigint
language sql as $$
  select pg_temp.tell(p_payment, 'charge.refunded',
    jsonb_build_object('id', 'ch_' || p_payment, 'captured', true, 'amount_captured', 1000, 'amount_refunded', p_total), p_previous);
$$;
create function pg_temp.refund(p_payment text, p_type text, p_id text, p_day int, p_amount int) returns bigint
language sql as $$
  select pg_temp.tell(p_payment, 'refund.' || p_type, pg_temp.on_day(p_day, jsonb_build_object('id', p_id, 'amount', p_amount)));
$$;

-- It was a dispute.
select pg_temp.adopt('pi_lost', 400);
select is(
  pg_temp.dispute('pi_lost', 'closed', 'lost', pg_temp.moved('txn_1', 1, -400)), 600::bigint, 'a dispute is not debited twice'
);
select results_eq(
  $$ select state::text, refunded, disputed from public.payments where object_id = 'pi_lost' $$,
  $$ values ('dispute_lost', 0::bigint, -400::bigint) $$, 'and the payment knows what the debit was for'
);
select is((select count(*)::int from public.credit_ledger where object_id = 'pi_lost'), 2, 'for which the ledger needs no row');
select is(
  pg_temp.dispute('pi_lost', 'closed', 'won', pg_temp.moved('txn_1', 1, -400), pg_temp.moved('txn_2', 2, 400)), 1000::bigint,
  'an appeal brings its money back'
);
select pg_temp.adopt('pi_won', 400);
select is(
  pg_temp.dispute('pi_won', 'funds_reinstated', 'won', pg_temp.moved('txn_3', 1, -400), pg_temp.moved('txn_4', 2, 400)), 1000::bigint,
  'a dispute that is won later brings its money back'
);
select pg_temp.adopt('pi_again', 400);
select is(
  pg_temp.tell('pi_again', 'charge.dispute.funds_withdrawn', jsonb_build_object('id', 'dp_again', 'amount', 400, 'status', 'needs_response',
    'balance_transactions', jsonb_build_array(pg_temp.moved('txn_5', 1, -400))), null, 'evt_debit_pi_again'), 600::bigint,
  'the event of an adopted row can come again'
);

-- It was a refund.
select pg_temp.adopt('pi_refunded', 300);
select is(pg_temp.charge_refunded('pi_refunded', 500, 300), 500::bigint, 'a higher total debits the difference');
select is(pg_temp.refund('pi_refunded', 'updated', 're_1', 1, 300), 500::bigint, 'a refund from before moves nothing');
select is(pg_temp.refund('pi_refunded', 'created', 're_2', 2, 200), 500::bigint, 'nor does the one in the total');
select pg_temp.adopt('pi_by_id', 300);
select is(pg_temp.refund('pi_by_id', 'updated', 're_3', 1, 300), 700::bigint, 'told by itself it moves nothing either');
select is(pg_temp.refund('pi_by_id', 'created', 're_4', 2, 200), 500::bigint, 'a new one does');
select is(pg_temp.refund('pi_by_id', 'failed', 're_3', 1, 300), 800::bigint, 'one from before that fails gives its money back');
select pg_temp.adopt('pi_disputed', 300);
select is(
  pg_temp.dispute('pi_disputed', 'created', 'needs_response', pg_temp.moved('txn_6', 2, -400)), 300::bigint, 'a new dispute is debited'
);
select is(
  pg_temp.dispute('pi_disputed', 'closed', 'won', pg_temp.moved('txn_6', 2, -400), pg_temp.moved('txn_7', 2, 400)), 700::bigint,
  'and comes back'
);

-- It was a dispute of which no event tells, and a refund comes.
select pg_temp.adopt('pi_silent', 400);
select is(pg_temp.charge_refunded('pi_silent', 200, 0), 400::bigint, 'a charge that had no refunds before has a first one');
select is(
  pg_temp.dispute('pi_silent', 'updated', 'lost', pg_temp.moved('txn_8', 1, -400)), 400::bigint, 'the dispute tells nothing new'
);
select pg_temp.adopt('pi_bare', 400);
select is(pg_temp.charge_refunded('pi_bare', 200), 600::bigint, 'a total alone can be what was debited');
select is(pg_temp.refund('pi_bare', 'created', 're_5', 2, 200), 400::bigint, 'until the refund tells itself');
select pg_temp.adopt('pi_known', 400);
select is(
  pg_temp.dispute('pi_known', 'closed', 'lost', pg_temp.moved('txn_9', 1, -400)), 600::bigint, 'where the dispute tells first'
);
select is(pg_temp.charge_refunded('pi_known', 200), 400::bigint, 'a total is new by itself');

-- It was both.
select pg_temp.adopt('pi_both', 700);
select is(
  pg_temp.dispute('pi_both', 'closed', 'won', pg_temp.moved('txn_10', 1, -400), pg_temp.moved('txn_11', 2, 400)), 700::bigint,
  'what came back is the dispute''s'
);
select is(pg_temp.charge_refunded('pi_both', 500, 300), 500::bigint, 'and the refunds go on');
select results_eq(
  $$ select refunded, disputed from public.payments where object_id = 'pi_both' $$, $$ values (500::bigint, 0::bigint) $$,
  'each sum is what Stripe says'
);

select * from finish();
rollback;
