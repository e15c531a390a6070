-- The limit per user holds inside one batch.
begin;
select plan(6);

insert into public.engine_config (pool_id, max_per_user) values ('b_limit', 2), ('b_limit_other', 2);
insert into public.inventory_slots (pool_id)
select pool from (values ('b_limit'), ('b_limit_other')) p (pool), generate_series(1, 10);

create temp table answer as
select * from public.claim_batch(
  array['b_limit', 'b_limit', 'b_limit', 'b_limit', 'b_limit_other'],
  array['ann', 'ann', 'bob', 'ann', 'ann'],
  array['a1', 'a2', 'b1', 'a3', 'a4']
);
select results_eq(
  $$ select ordinal, outcome from answer order by ordinal $$,
  $$ values (1, 'claimed'), (2, 'claimed'), (3, 'claimed'), (4, 'limit'), (5, 'claimed') $$,
  'the first requests of a user win, and each pool counts for itself'
);
select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_limit', 'b_limit', 'b_limit'], array['bob', 'bob', 'ann'], array['b2', 'b3', 'a1']
     ) order by ordinal $$,
  array['claimed', 'limit', 'same'],
  'claims held before count, and a retry does not'
);
select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_limit', 'b_limit', 'b_limit'], array['cid', 'cid', 'cid'], array['c1', 'c1', 'c2']
     ) order by ordinal $$,
  array['claimed', 'same', 'claimed'],
  'a request id twice in the batch counts once towards the limit'
);
select results_eq(
  $$ select user_id::text, count(*)::int from public.claims where pool_id = 'b_limit' group by 1 order by 1 $$,
  $$ values ('ann', 2), ('bob', 2), ('cid', 2) $$,
  'no user holds more than the limit, and refused requests have left no claim'
);
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'b_limit' and status = 'RESERVED'), 6,
  'refused requests have taken no slot'
);
select is(
  (select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = 'b_limit'), 6,
  'refused requests have sent no message'
);

select * from finish();
rollback;
