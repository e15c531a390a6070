-- finalize_batch says for each claim: committed, already or conflict.
begin;
select plan(15);

select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(2, 'bob', 2), tests.ticket(3, 'cid')),
  'committed committed committed', 'new claims are committed'
);
select results_eq(
  $$ select right(resource_id::text, 1), user_id, left(claim_id::text, 1) from public.confirmed_tickets
     where pool_id = 'p' order by resource_id $$,
  $$ values ('1', 'ann', '1'), ('2', 'bob', '1'), ('3', 'cid', '0') $$,
  'each has its ticket; without a claim_id the slot is its identity'
);
create temp table before as select tests.state() as state;
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(2, 'bob', 2), tests.ticket(3, 'cid')),
  'already already already', 'the same batch again is already done'
);
select is(tests.outcomes(tests.ticket(1, 'eve', 9)), 'conflict', 'a slot of another claim is a conflict');
select is(
  tests.outcomes(tests.ticket(1, 'ann', 9)), 'conflict',
  'a slot of another claim is a conflict, also for the same user'
);
select is(tests.outcomes(tests.ticket(8, 'ann', 1)), 'conflict', 'a claim that has a ticket gets no other slot');
select is(tests.outcomes(tests.ticket(1, 'ann')), 'already', 'without a claim_id the same user is already done');
select is(tests.outcomes(tests.ticket(1, 'eve')), 'conflict', 'without a claim_id another user is a conflict');
select is(
  tests.outcomes(tests.ticket(3, 'eve')), 'conflict', 'a ticket without a claim_id is not taken over either'
);
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1) || '{"pool_id": "other"}'), 'conflict', 'a ticket of another pool is a conflict'
);
select is(
  tests.outcomes(tests.ticket(3, 'cid') || '{"pool_id": "other"}'), 'conflict', 'also without a claim_id'
);
select is(tests.state(), (select state from before), 'neither already nor conflict changes anything');

select is(
  tests.outcomes(tests.ticket(1, 'eve', 9), tests.ticket(4, 'dan', 4), tests.ticket(2, 'bob', 2)),
  'conflict committed already', 'a conflict does not stop the rest of the batch'
);
select results_eq(
  $$ select ordinal, right(resource_id::text, 1), right(claim_id::text, 1)
     from public.finalize_batch(jsonb_build_array(tests.ticket(2, 'bob', 2), tests.ticket(1, 'ann'))) order by 1 $$,
  $$ values (1, '2', '2'), (2, '1', null) $$,
  'an answer names the payload it is for'
);
select is_empty($$ select public.finalize_batch('[]') $$, 'an empty batch has no answers');

select * from finish();
rollback;
