-- A batch gives every request the outcome a single claim would have got, pools mixed.
begin;
select plan(8);

insert into public.engine_config (pool_id, is_active, require_auth, max_per_user, hold_sec) values
  ('b_open', true, false, 1, 60), ('b_closed', false, false, null, null), ('b_auth', true, true, null, null),
  ('b_empty', true, false, null, null);
insert into public.inventory_slots (pool_id)
select pool from (values ('b_open'), ('b_closed'), ('b_auth')) p (pool), generate_series(1, 4);
select public.claim_resource_and_queue('b_open', 'old', 'old1');

create temp table answer as
select * from public.claim_batch(
  array['b_open', 'b_closed', 'b_auth', 'b_empty', 'nowhere', 'b_open', 'b_open', 'b_open', 'b_auth'],
  array['ann', 'ann', 'ann', 'ann', 'ann', 'old', 'bob', 'old', 'bob'],
  array['r1', 'r1', 'r1', 'r1', 'r1', 'old1', 'old1', 'old2', null],
  array[false, true, false, true, true, true, true, true, true]
);
select results_eq(
  $$ select ordinal, outcome from answer order by ordinal $$,
  $$ values (1, 'claimed'), (2, 'closed'), (3, 'auth_required'), (4, 'sold_out'), (5, 'unknown_pool'),
    (6, 'same'), (7, 'claimed'), (8, 'limit'), (9, 'claimed') $$,
  'each request has one answer, and the right one'
);
select results_eq(
  $$ select a.claim_id, a.resource_id, a.state, a.claimed_at, a.hold_until from answer a
     where a.ordinal in (1, 6, 7, 9) order by a.ordinal $$,
  $$ select c.claim_id, c.slot_id, 'queued', c.claimed_at, c.hold_until from public.claims c
     where c.pool_id in ('b_open', 'b_auth')
     order by c.user_id = 'bob', c.user_id, c.pool_id desc $$,
  'an answer with a claim names the claim, its slot, state, time and hold'
);
select is_empty(
  $$ select from answer where outcome not in ('claimed', 'same')
     and (claim_id, resource_id, state, claimed_at, hold_until) is distinct from (null, null, null, null, null) $$,
  'an answer without a claim names none'
);
select results_eq(
  $$ select user_id::text, verified from public.claims where pool_id in ('b_open', 'b_auth') order by user_id $$,
  $$ values ('ann', false), ('bob', true), ('bob', true), ('old', true) $$,
  'each claim keeps whether its user was verified, and refused requests have left none'
);
select bag_eq(
  $$ select q.msg_id, q.message from pgmq.q_intake_queue q where q.message ->> 'pool_id' like 'b\_%' $$,
  $$ select c.msg_id, jsonb_build_object('claim_id', c.claim_id, 'pool_id', c.pool_id, 'resource_id', c.slot_id,
       'user_id', c.user_id, 'verified', c.verified, 'state', 'queued') from public.claims c where c.pool_id like 'b\_%' $$,
  'each claim has its message'
);
select bag_eq(
  $$ select s.id, s.locked_by, s.locked_at from public.inventory_slots s
     where s.pool_id like 'b\_%' and s.status = 'RESERVED' $$,
  $$ select c.slot_id, c.user_id::text, c.claimed_at from public.claims c where c.pool_id like 'b\_%' $$,
  'each claim has its slot, and no other slot is taken'
);

create temp table before as select tests.state() as state;
select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_closed', 'b_auth', 'b_empty', 'nowhere', 'b_open', 'b_open'],
       array['a', 'a', 'a', 'a', 'bob', 'old'], array['x', 'x', 'x', 'x', 'old2', 'x'],
       array[false, false, false, false, true, true]
     ) order by ordinal $$,
  array['closed', 'auth_required', 'sold_out', 'unknown_pool', 'limit', 'limit'],
  'a batch may be refused as a whole, request by request'
);
select is(tests.state(), (select state from before), 'a batch of refusals changes nothing');

select * from finish();
rollback;
