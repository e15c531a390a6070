-- What was refunded is the same sum, whether charges tell totals or refunds tell themselves.
begin;
select plan(22);

-- The second in which the next event happens.
create sequence pg_temp.seconds;
select nextval('pg_temp.seconds');

create function pg_temp.apply(p_type text, p_object jsonb default '{}') returns text
language sql as $$
  select tests.apply(p_type, p_object, '2026-03-01 12:00:00+00'::timestamptz + make_interval(secs => currval('pg_temp.seconds')));
$$;

create function pg_temp.charge_refunded(p_total int)
returns text
language sql
as $$
  select pg_temp.apply('charge.refunded', jsonb_build_object(
    'id', 'ch_1', 'payment_intent', 'pi_1', 'amount_refunded', p_total
  ));
$$;

-- A refund as the provider sends it: it names the payment, not the user.
create function pg_temp.refund(p_type text, p_id text, p_amount int, p_status text default 'succeeded')
returns text
language sql
as $$
  select pg_temp.apply(p_type, jsonb_build_object(
    'id', p_id, 'payment_intent', 'pi_1', 'amount', p_amount, 'status', p_status, 'metadata', '{}'::jsonb
  ));
$$;

select is(pg_temp.refund('refund.created', 're_1', 300, 'pending'), null, 'a refund may come before its payment');
select is_empty($$ select from public.credit_ledger $$, 'of which no event has told yet what was paid');
select is(pg_temp.apply('payment_intent.succeeded'), null, 'the payment comes');
select results_eq(
  $$ select kind, amount::int from public.credit_ledger order by kind $$, $$ values ('payment', 1000), ('refund', -300) $$,
  'then both count'
);
select is(tests.payment(), 'partially_refunded 700', 'a refund is debited once it is under way');
select lives_ok($$ select pg_temp.refund('refund.updated', 're_1', 300) $$, 'its success does not contradict it');
select lives_ok($$ select pg_temp.charge_refunded(300) $$, 'nor is the total that the charge tells');
select is(tests.payment(), 'partially_refunded 700', 'three events that tell one refund are one debit');
select is(pg_temp.charge_refunded(1000), null, 'a higher total is news');
select is(tests.payment(), 'refunded 0', 'the rest is debited');
select lives_ok($$ select pg_temp.refund('refund.created', 're_2', 700) $$, 'the refund behind it comes late');
select is(pg_temp.charge_refunded(300), 'already known', 'a lower total is nothing new');
select is(tests.payment(), 'refunded 0', 'neither is debited again');
select is(pg_temp.refund('refund.failed', 're_2', 700, 'failed'), null, 'a refund that fails after all is news');
select is(tests.payment(), 'partially_refunded 700', 'its money comes back');
select lives_ok($$ select pg_temp.refund('refund.updated', 're_2', 700, 'pending') $$, 'an old word comes late');
select is(tests.payment(), 'partially_refunded 700', 'a failed refund stays failed');
select results_eq(
  $$ select business_key, amount::int from public.credit_ledger where kind = 'refund' order by id $$,
  $$ values ('refund:pi_1:2', -300), ('refund:pi_1:3', -700), ('refund:pi_1:4', 700) $$,
  'the ledger has a row for each change of the sum'
);
select throws_ok(
  $$ select pg_temp.refund('refund.updated', 're_1', 301) $$,
  'SL030', 'refund re_1 is known as 300 of pi_1, not 301 of pi_1', 'a refund that changes its amount is refused'
);

-- Without a word of the single refunds but that one failed: the charge's totals say the rest.
select nextval('pg_temp.seconds');
select pg_temp.apply('charge.refunded', '{"id": "ch_3", "payment_intent": "pi_3", "amount_refunded": 1000, "metadata": {"user_id": "bob"}}');
select pg_temp.apply('payment_intent.succeeded', '{"id": "pi_3", "metadata": {"user_id": "bob"}}');
create function pg_temp.failed()
returns text
language sql
as $$
  select pg_temp.apply('refund.failed', '{"id": "re_3", "payment_intent": "pi_3", "status": "failed", "metadata": {}}');
$$;
create function pg_temp.refunded_again()
returns text
language sql
as $$
  select pg_temp.apply('charge.refunded',
    '{"id": "ch_3", "payment_intent": "pi_3", "amount_refunded": 1000, "metadata": {"user_id": "bob"}}');
$$;
savepoint before;
select pg_temp.failed();
select results_eq($$ select amount from webhook.balance('bob') $$, $$ values (1000::bigint) $$, 'a refund failed');
select nextval('pg_temp.seconds');
select pg_temp.refunded_again();
select results_eq(
  $$ select amount from webhook.balance('bob') $$, $$ values (0::bigint) $$, 'a second one of the same amount counts'
);
rollback to before;
select nextval('pg_temp.seconds');
select pg_temp.refunded_again();
select setval('pg_temp.seconds', currval('pg_temp.seconds') - 1);
select pg_temp.failed();
select results_eq(
  $$ select amount from webhook.balance('bob') $$, $$ values (0::bigint) $$, 'also when the failure arrives after it'
);

select * from finish();
rollback;
