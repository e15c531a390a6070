-- A dispute is debited once and, when won, credited once.
begin;
select plan(17);

create function pg_temp.dispute(p_type text, p_id text, p_status text)
returns text
language sql
as $$
  select tests.apply('charge.dispute.' || p_type, jsonb_build_object(
    'id', p_id, 'charge', 'ch_1', 'payment_intent', 'pi_1', 'amount', 400, 'status', p_status, 'metadata', '{}'::jsonb
  ));
$$;

select throws_ok(
  $$ select pg_temp.dispute('created', 'dp_1', 'needs_response') $$,
  'SL034', null, 'a dispute waits for its payment with an error that is not final'
);
select is(tests.apply('payment_intent.succeeded'), null, 'the payment comes');
select is(pg_temp.dispute('created', 'dp_0', 'warning_needs_response'), null, 'an inquiry has an effect');
select is(tests.payment(), 'disputed 1000', 'an inquiry is a dispute that takes no money');
select is(pg_temp.dispute('created', 'dp_1', 'needs_response'), null, 'a dispute has an effect');
select is(tests.payment(), 'disputed 600', 'it is debited');
select lives_ok($$ select pg_temp.dispute('funds_withdrawn', 'dp_1', 'lost') $$, 'the withdrawal is no contradiction');
select is(tests.payment(), 'disputed 600', 'both tell one fact');
select is(
  pg_temp.dispute('funds_reinstated', 'dp_1', 'needs_response'), 'tells nothing about a payment',
  'money that comes back while it is open may be a part of it'
);
select is(tests.payment(), 'disputed 600', 'and is not taken for all of it');
select is(pg_temp.dispute('closed', 'dp_1', 'won'), null, 'a dispute that is won has an effect');
select is(tests.payment(), 'dispute_won 1000', 'its money comes back');
select lives_ok($$ select pg_temp.dispute('funds_reinstated', 'dp_1', 'won') $$, 'nor is the money that comes back');
select is(tests.payment(), 'dispute_won 1000', 'both tell one fact too');
select lives_ok(
  $$ select pg_temp.dispute('created', 'dp_2', 'needs_response'); select pg_temp.dispute('closed', 'dp_2', 'lost') $$,
  'another dispute is lost'
);
select is(tests.payment(), 'dispute_lost 600', 'losing takes no more than the dispute did');
select throws_ok(
  $$ select tests.apply('charge.dispute.created', '{"id": "dp_2", "payment_intent": "pi_1", "amount": 401}') $$,
  'SL030', 'dispute dp_2 is known as -400 of pi_1, not -401 of pi_1', 'a dispute that changes its amount is refused'
);

select * from finish();
rollback;
