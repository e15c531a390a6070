-- The same slot or claim twice in one batch makes one ticket, and only its owner is told so.
begin;
select plan(11);

select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(1, 'ann', 1)), 'committed already',
  'the same claim twice is committed once'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    tests.outcomes(tests.ticket(2, 'ann', 2), tests.ticket(2, 'bob', 3)), ' ')) o),
  'committed conflict', 'two claims for one slot: one is committed, the other a conflict'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    tests.outcomes(tests.ticket(4, 'ann', 4), tests.ticket(5, 'ann', 4)), ' ')) o),
  'committed conflict', 'one claim for two slots: one is committed, the other a conflict'
);
select is(
  tests.outcomes(tests.ticket(6, 'ann'), tests.ticket(6, 'ann')), 'committed already',
  'the same user twice without a claim_id is committed once'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    tests.outcomes(tests.ticket(7, 'ann'), tests.ticket(7, 'bob')), ' ')) o),
  'committed conflict', 'two users for one slot without claim ids: one is committed, the other a conflict'
);
select is(
  (select count(*)::int from public.confirmed_tickets where pool_id = 'p'), 5, 'five slots have one ticket each'
);
select is(
  tests.outcomes(tests.ticket(8, 'ann', 8), tests.ticket(8, 'ann'), tests.ticket(8, 'ann', 8)),
  'committed already already', 'a claim, and its slot without a claim_id, are one ticket: only one is told that it was committed'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    tests.outcomes(tests.ticket(9, 'ann'), tests.ticket(9, 'ann', 9)), ' ')) o), 'already committed',
  'in whatever order'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    tests.outcomes(tests.ticket(10, 'ann', 10), tests.ticket(10, 'ann', 10) || '{"pool_id": "other"}'), ' ')) o),
  'committed conflict', 'one claim in two pools: one is committed, the other a conflict'
);
create temp table before as select tests.state() as state;
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1), tests.ticket(1, 'ann', 1)), 'already already',
  'the same duplicates again are already done'
);
select is(tests.state(), (select state from before), 'and change nothing');

select * from finish();
rollback;
