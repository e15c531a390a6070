-- More refunds than can be right wait for an operator.
begin;
select plan(14);

create function pg_temp.owe(p_from int, p_to int, p_state text default 'due', p_actor text default null) returns void language sql as $$
  insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, decided_by, refund_key)
  select 'void:' || tests.claim_id(n), 'stripe/pi_' || n, 100, 'usd', 'test', p_state, p_actor is null and p_state = 'due', p_actor, 'void:' || n
  from generate_series(p_from, p_to) n
$$;
create function pg_temp.paid(p_from int, p_to int) returns void language sql as $$
  insert into public.claim_outbox (id, kind, payment_key, fact, state, finished_at)
  select 'settle:stripe/pi_' || n, 'settle', 'stripe/pi_' || n, '{}', 'done', now() from generate_series(p_from, p_to) n
$$;
create function pg_temp.states() returns text language sql as $$
  select string_agg(s.state || ' ' || s.n, ', ' order by s.state) from (select r.state, count(*) as n from public.refunds_due r group by 1) s
$$;

select pg_temp.paid(1, 100);
select pg_temp.owe(1, 20);
savepoint twenty;
select is((select count(*)::int from public.refunds_take(5, 60)), 5, 'twenty of a hundred payments go out');
select pg_temp.owe(21, 21);
select is((select count(*)::int from public.refunds_take(5, 60)), 0, 'twenty-one do not');
select is(pg_temp.states(), 'review 21', 'all of them wait for an operator, also those that are on their way');
select is((select count(*)::int from public.refunds_due where braked_at = now()), 21, 'and say why');
select is(public.ledger_order_metrics() ->> 'braked', '21', 'the metrics say so');
select pg_temp.owe(22, 22);
select is((select count(*)::int from public.refunds_take(5, 60)), 0, 'what comes after them waits too');
select is(
  (select string_agg(outcome, ' ') from public.decide_refunds(array['void:' || tests.claim_id(21)], 'send', 'bob')), 'due', 'an operator sends one'
);
select is((select count(*)::int from public.refunds_take(5, 60)), 1, 'it goes out');
select is(public.ledger_order_metrics() ->> 'braked', '21', 'the others are held');
select is(
  (select string_agg(outcome, ' ') from public.decide_refunds(array['void:' || tests.claim_id(1)], 'skip', 'bob')), 'tried',
  'one that was on its way may have reached Stripe, and cannot be skipped'
);

rollback to twenty;
select pg_temp.owe(21, 21);
select pg_temp.paid(101, 420);
select is((select count(*)::int from public.refunds_take(50, 60)), 21, 'at five in a hundred payments they go out');
rollback to twenty;
select pg_temp.owe(21, 40, 'review');
select pg_temp.owe(41, 60, 'due', 'bob');
select is(
  (select count(*)::int from public.refunds_take(50, 60)), 40, 'what an operator asked for, and what waits for one, does not count'
);
rollback to twenty;
update public.refunds_due set created_at = now() - interval '11 minutes';
select pg_temp.owe(21, 40);
select is((select count(*)::int from public.refunds_take(50, 60)), 40, 'nor does what is older than ten minutes');
select is(pg_temp.states(), 'due 40', 'and stays due until Stripe has it');

select * from finish();
rollback;
