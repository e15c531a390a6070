-- An erasure in the ledger: tickets of claims on their way, and what may change in tables that are insert only.
begin;
select plan(17);

insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
values ('anna', 5, 'usd', 'payment', 'stripe', 'pi_1', 'evt_1', 'payment:pi_1:1');
select public.begin_erasure('anna', null, 'erased:' || repeat('a', 32), 'op');

-- Claims 1 and 2 are on their way; the ledger has the ticket of the second.
select public.finalize_batch(jsonb_build_array(tests.ticket(2, 'anna', 2)));
select is(
  public.erase_tickets('anna', jsonb_build_array(
    tests.ticket(1, 'anna', 1), tests.ticket(2, 'anna', 2), tests.ticket(3, 'anna', 3)
  )), 3, 'the ledger is told of claims'
);
select is(
  (select user_id from public.confirmed_tickets), 'erased:' || repeat('a', 32), 'a ticket that was there changes, and no placeholder stays'
);
select results_eq(
  $$ select outcome from public.finalize_batch(jsonb_build_array(tests.ticket(1, 'anna', 1), tests.ticket(2, 'anna', 2))) order by ordinal $$,
  $$ values ('committed'), ('already') $$, 'a worker with the old name writes the ticket, once'
);
select is((select count(*)::int from public.confirmed_tickets where user_id = 'erased:' || repeat('a', 32)), 2, 'under the new one');
select results_eq(
  $$ select outcome from public.tickets_of(jsonb_build_array(tests.ticket(1, 'anna', 1))) $$, $$ values ('already') $$, 'and finds it'
);
select results_eq(
  $$ select outcome from public.finalize_batch(jsonb_build_array(
       tests.ticket(1, 'anna', 1), tests.ticket(1, 'erased:' || repeat('a', 32), 1), tests.ticket(1, 'bob', 9)
     )) order by ordinal $$,
  $$ values ('already'), ('already'), ('conflict') $$, 'by either name; another claim is another claim'
);
select results_eq(
  $$ select outcome from public.void_tickets(jsonb_build_array(tests.ticket(3, 'anna', 3) || '{"cause": "released"}')) $$,
  $$ values ('voided') $$, 'what ends under the old name'
);
select is((select user_id from public.voided_tickets), 'erased:' || repeat('a', 32), 'ends under the new one');
select is((select count(*)::int from public.erased_claims where replacement ~ '^erased:'), 3, 'which stays known by the claim');
select results_eq(
  $$ select outcome from public.finalize_batch(jsonb_build_array(tests.ticket(8, 'bob', 8))) $$, $$ values ('committed') $$, 'others go as before'
);

-- No claim has no user to compare: it must end all the same.
set local statement_timeout = '5s';
select lives_ok($$ select * from public.write_tickets(null, null, null, null, null, null) $$, 'nothing to write is written at once');
reset statement_timeout;

-- The ledger is insert only.
select throws_ok($$ update public.credit_ledger set user_id = 'x' $$, '23001', null, 'no one renames a credit');
set local sluice.audit_exception = 'erase';
select throws_ok($$ update public.credit_ledger set user_id = 'x' $$, '23001', null, 'an erasure neither, to a name of its choice');
select throws_ok(
  $$ update public.credit_ledger set user_id = 'erased:' || repeat('b', 32), amount = 6 $$, '23001', null, 'nor an amount'
);
select throws_ok('delete from public.credit_ledger', '23001', null, 'nor does it delete');
reset sluice.audit_exception;
select public.erase_step('anna') from generate_series(1, 40);
select results_eq(
  'select user_id, amount::int from public.credit_ledger', $$ values ('erased:' || repeat('a', 32), 5) $$, 'it takes the name away'
);
select results_eq(
  $$ select replacement, changed ->> 'public.credit_ledger' from public.finish_erasure('anna') $$,
  $$ values ('erased:' || repeat('a', 32), '1') $$, 'and says so'
);

select * from finish();
rollback;
