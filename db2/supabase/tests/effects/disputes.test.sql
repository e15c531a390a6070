-- A dispute moves what its balance transactions moved, each once; its status moves nothing.
begin;
select plan(34);

create function pg_temp.moved(p_id text, p_amount int, p_more jsonb default '{}') returns jsonb
language sql as $$
  select '{"object": "balance_transaction", "type": "adjustment", "currency": "usd", "fee": 1500}'
    || jsonb_build_object('id', p_id, 'amount', p_amount) || p_more;
$$;

create function pg_temp.dispute(p_type text, p_id text, p_status text, variadic p_moved jsonb[] default '{}')
returns text
language sql
as $$
  select tests.apply('charge.dispute.' || p_type, jsonb_build_object(
    'id', p_id, 'charge', 'ch_1', 'payment_intent', 'pi_1', 'amount', 400, 'status', p_status, 'metadata', '{}'::jsonb,
    'balance_transactions', to_jsonb(p_moved)
  ));
$$;

select is(tests.apply('payment_intent.succeeded'), null, 'the payment comes');
select is(pg_temp.dispute('created', 'dp_0', 'warning_needs_response'), null, 'an inquiry has an effect');
select is(tests.payment(), 'disputed 1000', 'an inquiry is a dispute that takes no money');
select is(pg_temp.dispute('closed', 'dp_0', 'prevented'), null, 'so has a dispute that was prevented');
select is(tests.payment(), 'dispute_won 1000', 'which takes none either');
select is(
  pg_temp.dispute('created', 'dp_1', 'needs_response'), 'older than what is known', 'a status alone is nothing new'
);
select is(tests.payment(), 'dispute_won 1000', 'and moves no money');
select is(
  pg_temp.dispute('funds_withdrawn', 'dp_1', 'needs_response', pg_temp.moved('txn_1', -400)), null,
  'a balance transaction has an effect'
);
select is(tests.payment(), 'dispute_won 600', 'its amount is debited, its fee is not');
select is(
  pg_temp.dispute('updated', 'dp_1', 'under_review', pg_temp.moved('txn_1', -400)), 'older than what is known',
  'told again it has none'
);
select is(
  pg_temp.dispute('funds_reinstated', 'dp_1', 'under_review', pg_temp.moved('txn_2', 150), pg_temp.moved('txn_1', -400)),
  null, 'a part of it comes back while it is open'
);
select is(tests.payment(), 'dispute_won 750', 'and is credited');
select is(
  pg_temp.dispute('closed', 'dp_1', 'lost', pg_temp.moved('txn_1', -400), pg_temp.moved('txn_2', 150)), null,
  'losing it has an effect'
);
select is(tests.payment(), 'dispute_lost 750', 'on the state');
select is(
  pg_temp.dispute('closed', 'dp_1', 'won', pg_temp.moved('txn_1', -400), pg_temp.moved('txn_2', 150),
    pg_temp.moved('txn_3', 250)), null, 'an appeal can win it after all'
);
select is(tests.payment(), 'dispute_won 1000', 'when all of it came back, it is not lost');
select is(
  pg_temp.dispute('funds_withdrawn', 'dp_2', 'needs_response', pg_temp.moved('txn_4', -400), pg_temp.moved('txn_5', -1500,
    '{"type": "stripe_fee"}')), null, 'another dispute takes its money'
);
select is(tests.payment(), 'dispute_lost 600', 'a fee that is a transaction of its own does not count');
select results_eq(
  $$ select business_key, amount::int from public.credit_ledger where kind = 'dispute' order by id $$,
  $$ values ('dispute:pi_1:2', -400), ('dispute:pi_1:3', 150), ('dispute:pi_1:4', 250), ('dispute:pi_1:5', -400) $$,
  'the ledger has a row for each change'
);
select throws_ok(
  $$ select pg_temp.dispute('updated', 'dp_2', 'lost', pg_temp.moved('txn_4', -402)) $$,
  'SL030', 'balance transaction txn_4 is known as -400 of pi_1, not -402 of pi_1', 'a transaction keeps its amount'
);
select throws_ok(
  $$ select tests.apply('charge.dispute.updated', '{"id": "dp_2", "payment_intent": "pi_2", "balance_transactions":
       [{"id": "txn_4", "amount": -400, "currency": "usd"}]}') $$,
  'SL030', null, 'and its payment'
);

-- In the currency of the account: the payment's own counts.
create function pg_temp.settled(p_amount int, p_rate numeric, p_whole bigint default 400) returns bigint
language sql as $$
  select m.amount from webhook.moved_amount(jsonb_build_object('currency', 'usd', 'amount', p_whole),
    pg_temp.moved('txn', p_amount, jsonb_build_object('currency', 'eur', 'exchange_rate', p_rate))) m;
$$;
select is(pg_temp.settled(-361, 0.9031), -400::bigint, 'what rounds to the whole amount is the whole amount');
select is(pg_temp.settled(370, 0.925), 400::bigint, 'at another rate when it comes back');
select is(pg_temp.settled(-92, 0.92), -100::bigint, 'a part is turned back by its rate');
select is(pg_temp.settled(-67, 0.0067, 9999), -9999::bigint, 'a yen is less than a cent: the whole amount is exact');
select is(pg_temp.settled(-1234567, 1.234567, 1000000), -1000000::bigint, 'a rate has few digits');
select is(pg_temp.settled(-361, null), -400::bigint, 'without a rate it is the whole amount');
select throws_ok(
  $$ select pg_temp.settled(-361, null, null) $$, 'SL030', null, 'without both it cannot be turned back'
);
select throws_ok(
  $$ select pg_temp.dispute('updated', 'dp_3', 'lost', '{"id": "txn_9", "amount": "-400", "currency": "usd"}') $$,
  'SL030', 'a balance transaction lacks its id, its amount or its currency', 'a number in quotes is none'
);
select throws_ok(
  $$ select tests.apply('charge.dispute.created', '{"id": "dp_3", "payment_intent": "pi_1", "balance_transactions": {}}') $$,
  'SL030', 'balance_transactions is not a list', 'nor is an object a list'
);
select is(tests.payment(), 'dispute_lost 600', 'none of which changed anything');

-- A unit of the account is worth fifteen of the payment's: each part can be off by seven.
create function pg_temp.parts(variadic p_amounts int[]) returns text
language sql as $$
  select tests.apply('charge.dispute.updated', jsonb_build_object('id', 'dp_parts', 'object', 'dispute', 'amount', 1000,
    'currency', 'usd', 'status', 'under_review', 'charge', 'ch_4', 'payment_intent', 'pi_4', 'balance_transactions', (
      select jsonb_agg(jsonb_build_object('id', 'txn_part_' || n, 'amount', amount, 'currency', 'eur', 'exchange_rate', 0.0667))
      from unnest(p_amounts) with ordinality as a (amount, n)
    )));
$$;
create function pg_temp.disputed() returns bigint
language sql as $$ select p.disputed from public.payments p where p.object_id = 'pi_4' $$;
select pg_temp.parts(-67, 22);
select is(pg_temp.disputed(), -670::bigint, 'a part that came back is known as far as its amount tells');
select pg_temp.parts(-67, 22, 22, 23);
select is(pg_temp.disputed(), 0::bigint, 'all that came back in parts is all of it');
select pg_temp.parts(-67, 22, 22, 23, -67);
select is(pg_temp.disputed(), -1000::bigint, 'and what is taken again is all of it');


select * from finish();
rollback;
