-- A proven and an unproven user of one name are two users: request ids, limits and messages.
begin;
select plan(7);

insert into public.engine_config (pool_id, max_per_user) values ('proven', 2);
insert into public.inventory_slots (pool_id) select 'proven' from generate_series(1, 9);
create temp table known as
select * from public.claim_batch(array['proven'], array['ann'], array['order-1'], array[true]);

select results_eq(
  $$ select a.outcome, a.claim_id <> k.claim_id
     from known k, public.claim_batch(array['proven'], array['ann'], array['order-1'], array[false]) a $$,
  $$ values ('claimed', true) $$,
  'a stranger with a proven user''s request id gets a claim of its own, and learns nothing'
);
select results_eq(
  $$ select a.outcome, a.claim_id = k.claim_id
     from known k, public.claim_batch(array['proven'], array['ann'], array['order-1'], array[true]) a $$,
  $$ values ('same', true) $$,
  'the proven user gets the same claim again'
);
select results_eq(
  $$ select a.outcome from public.claim_batch(
       array['proven', 'proven'], array['ann', 'ann'], array['order-2', 'order-3'], array[false, false]) a order by a.ordinal $$,
  array['claimed', 'limit'],
  'the unproven user has a limit of its own'
);
select results_eq(
  $$ select a.outcome from public.claim_batch(
       array['proven', 'proven'], array['ann', 'ann'], array['order-2', 'order-3'], array[true, true]) a order by a.ordinal $$,
  array['claimed', 'limit'],
  'and takes nothing of the proven user''s'
);
select results_eq(
  $$ select a.outcome from public.claim_batch(
       array['proven', 'proven'], array['zoe', 'zoe'], array['1', '1'], array[true, false]) a order by a.ordinal $$,
  array['claimed', 'claimed'],
  'both in one batch are two requests'
);
select bag_eq(
  $$ select q.message ->> 'claim_id', (q.message ->> 'verified')::boolean from pgmq.q_intake_queue q
     where q.message ->> 'pool_id' = 'proven' $$,
  $$ select c.claim_id::text, c.verified from public.claims c where c.pool_id = 'proven' $$,
  'each message tells whether its user is proven'
);
select tests.as_caller('anon', null, $$ select public.claim_resource_and_queue('proven', 'bob', '1') $$);
select results_eq(
  $$ select c.verified from public.claims c where c.user_id = 'bob' $$, array[false], 'a stranger''s claim is unproven'
);

select * from finish();
rollback;
