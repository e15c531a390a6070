-- Request ids inside a batch: the same again, twice in one batch, of two users.
begin;
select plan(9);

insert into public.inventory_slots (pool_id) select 'twice' from generate_series(1, 10);

create temp table answer as
select * from public.claim_batch(
  array['twice', 'twice', 'twice', 'twice', 'twice'],
  array['ann', 'ann', 'bob', 'bob', 'bob'],
  array['r1', 'r1', 'r1', null, null]
);
select results_eq(
  $$ select ordinal, outcome from answer order by ordinal $$,
  $$ values (1, 'claimed'), (2, 'same'), (3, 'claimed'), (4, 'claimed'), (5, 'claimed') $$,
  'a request twice in one batch is one claim, and the other user''s is another'
);
select is(
  (select claim_id from answer where ordinal = 2), (select claim_id from answer where ordinal = 1),
  'both answers name the same claim'
);
select is((select count(*)::int from public.claims where pool_id = 'twice'), 4, 'the batch made four claims');
select is(
  (select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = 'twice'), 4,
  'the batch sent four messages'
);
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'twice' and status = 'RESERVED'), 4,
  'the batch took four slots'
);

create temp table before as select tests.state() as state;
select results_eq(
  $$ select outcome, claim_id, resource_id from public.claim_batch(array['twice'], array['ann'], array['r1']) $$,
  $$ select 'same', claim_id, resource_id from answer where ordinal = 1 $$,
  'the same batch again returns the same claim'
);
select is(tests.state(), (select state from before), 'a retried batch changes nothing');
select is(
  public.claim_resource_and_queue('twice', 'ann', 'r1'), (select resource_id from answer where ordinal = 1),
  'a single retry of a request made in a batch returns the same slot'
);
select results_eq(
  $$ select outcome from public.claim_batch(
       array['twice', 'twice', 'twice'], array['ann', 'cid', 'cid'], array['r1', 'r2', 'r3']
     ) order by ordinal $$,
  array['same', 'claimed', 'claimed'],
  'a retry among new requests holds none of them up'
);

select * from finish();
rollback;
