-- finalize_transaction is done once, and never silent about another user’s seat.
begin;
select plan(11);

select public.finalize_transaction(tests.ticket(1, 'ann', 1)), public.finalize_transaction(tests.ticket(2, 'bob'));
create temp table before as select tests.state() as state;

select lives_ok(
  $$ select public.finalize_transaction(tests.ticket(1, 'ann', 1)) $$, 'the same claim again raises nothing'
);
select lives_ok(
  $$ select public.finalize_transaction(tests.ticket(1, 'ann')) $$, 'the same user without a claim_id raises nothing'
);
select is(tests.state(), (select state from before), 'a second call changes nothing');
select tests.refuses(
  $$ select public.finalize_transaction(tests.ticket(1, 'eve', 9)) $$, 'SL020', 'the slot of another claim is refused'
);
select tests.refuses(
  $$ select public.finalize_transaction(tests.ticket(1, 'eve')) $$, 'SL020',
  'the slot of another user is refused without a claim_id as well'
);
select tests.refuses(
  $$ select public.finalize_transaction(tests.ticket(2, 'eve')) $$, 'SL020',
  'a ticket that came without a claim_id is not taken over'
);
select tests.refuses(
  $$ select public.finalize_transaction(tests.ticket(9, 'ann', 1)) $$, 'SL020',
  'a claim that has a ticket gets no second slot'
);

select * from finish();
rollback;
