-- A dispute that says that money moved, and lists no balance transactions, is counted until an event lists them.
begin;
select plan(11);

create function pg_temp.dispute(p_type text, p_status text, p_moved jsonb default '[]', p_id text default 'dp_1') returns text
language sql as $$
  select tests.apply('charge.dispute.' || p_type, jsonb_build_object(
    'id', p_id, 'charge', 'ch_1', 'payment_intent', 'pi_1', 'amount', 400, 'status', p_status, 'metadata', '{}'::jsonb,
    'balance_transactions', p_moved));
  select array_to_string(p.silent_disputes, ' ') from public.payments p where p.object_id = 'pi_1';
$$;
create function pg_temp.counted() returns int
language sql as $$ select (public.webhook_sample() -> 'silent_disputes')::int $$;

select is(tests.apply('payment_intent.succeeded'), null, 'the payment comes');
select is(pg_temp.dispute('created', 'warning_needs_response'), null, 'an inquiry moves no money');
select is(pg_temp.dispute('closed', 'prevented'), null, 'nor does a dispute that was prevented');
select is(pg_temp.dispute('created', 'needs_response'), null, 'one that has begun may list its money with the next event');
select is(pg_temp.counted(), 0, 'so none is counted');
select is(pg_temp.dispute('funds_withdrawn', 'needs_response', 'null'), 'dp_1', 'a withdrawal without an amount is silent');
select is(pg_temp.dispute('closed', 'lost', '[{"id": "txn_f", "type": "stripe_fee", "amount": -15, "currency": "usd"}]', 'dp_2'),
  'dp_1 dp_2', 'so is a lost dispute that lists its fee alone');
select is(pg_temp.counted(), 1, 'the payment is counted');
select is(
  pg_temp.dispute('updated', 'needs_response', '[{"id": "txn_1", "amount": -400, "currency": "usd"}]'), 'dp_2',
  'a dispute that lists its money is silent no more'
);
select is(pg_temp.dispute('funds_withdrawn', 'needs_response'), 'dp_2', 'nor does an event make it so that comes late');
select pg_temp.dispute('closed', 'lost', '[{"id": "txn_2", "amount": -600, "currency": "usd"}]', 'dp_2');
select is(pg_temp.counted(), 0, 'and then nothing is counted');

select * from finish();
rollback;
