-- The ledger is insert only, for every role.
begin;
select plan(7);

insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
values ('ann', 5, 'usd', 'payment', 'stripe', 'pi_1', 'evt_1', 'payment:pi_1');

select throws_ok('update public.credit_ledger set amount = 6', '23001', 'credit_ledger is insert only', 'none changes');
select throws_ok('delete from public.credit_ledger', '23001', 'credit_ledger is insert only', 'no row is deleted');
select throws_ok('truncate public.credit_ledger', '23001', 'credit_ledger is insert only', 'nor are all');
set local session_replication_role = replica;
select throws_ok('delete from public.credit_ledger', '23001', null::text, 'not even in a session that skips triggers');
set local session_replication_role = default;
select throws_ok(
  $$ insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
     values ('ann', 5, 'usd', 'payment', 'stripe', 'pi_2', 'evt_2', 'payment:pi_1') $$,
  '23505', 'duplicate key value violates unique constraint "one_credit_per_fact"', 'a fact is credited once'
);
select throws_ok(
  $$ insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
     values ('ann', 5, 'usd', 'payment', 'stripe', 'pi_2', 'evt_1', 'payment:pi_2') $$,
  '23505', 'duplicate key value violates unique constraint "one_credit_per_event_and_kind"', 'so is an event'
);
select results_eq(
  $$ select amount from public.credit_ledger where event_id = 'evt_1' $$, array[5::bigint], 'the row is as it was'
);

select * from finish();
rollback;
