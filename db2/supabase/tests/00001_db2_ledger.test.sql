-- The ledger: tickets, written once.
begin;
select plan(12);

select has_table('public', 'confirmed_tickets', 'confirmed_tickets is a table');
select col_is_pk('public', 'confirmed_tickets', 'resource_id', 'a slot has one ticket');
select has_column('public', 'confirmed_tickets', 'pool_id', 'a ticket has a pool');
select has_column('public', 'confirmed_tickets', 'user_id', 'a ticket has an owner');
select has_column('public', 'confirmed_tickets', 'confirmed_at', 'a ticket says since when it is confirmed');
select col_is_unique('public', 'confirmed_tickets', 'claim_id', 'a claim has one ticket');
select has_function('public', 'finalize_transaction', array['jsonb'], 'finalize_transaction(jsonb) exists');

select lives_ok(
  $$ select public.finalize_transaction(
       '{"resource_id": "00000000-0000-4000-8000-000000000001", "pool_id": "p", "user_id": "ann"}') $$,
  'finalize_transaction takes the payload of a message'
);
select results_eq(
  $$ select user_id, pool_id, confirmed_at from public.confirmed_tickets
     where resource_id = '00000000-0000-4000-8000-000000000001' $$,
  $$ select 'ann', 'p', now() $$,
  'finalize_transaction writes a ticket with the right user'
);
select lives_ok(
  $$ select public.finalize_transaction(
       '{"resource_id": "00000000-0000-4000-8000-000000000001", "pool_id": "p", "user_id": "ann"}') $$,
  'finalize_transaction for the same slot again raises nothing'
);
select is(
  (select count(*)::int from public.confirmed_tickets where resource_id = '00000000-0000-4000-8000-000000000001'), 1,
  'and there is still one ticket'
);
select ok(
  (select relrowsecurity from pg_class where oid = 'public.confirmed_tickets'::regclass),
  'confirmed_tickets has row level security'
);

select * from finish();
rollback;
