-- Which user ids are proven is said request by request; nothing said means not proven.
begin;
select plan(6);

insert into public.engine_config (pool_id, require_auth) values ('b_signed', true), ('b_free', false);
insert into public.inventory_slots (pool_id)
select pool from (values ('b_signed'), ('b_free')) p (pool), generate_series(1, 5);
create temp table before as select tests.state() as state;

select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_signed', 'b_signed'], array['ann', 'bob'], array['r1', null], array[null, false]) $$,
  array['auth_required', 'auth_required'],
  'a verdict of null or false proves nothing'
);
select is(tests.state(), (select state from before), 'refusing unproven users changes nothing');

select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_signed', 'b_signed', 'b_free'], array['ann', 'bob', 'bob'], array['r1', 'r2', 'r3'],
       array[true, false, false]) order by ordinal $$,
  array['claimed', 'auth_required', 'claimed'],
  'each request is judged by its own verdict'
);
select results_eq(
  $$ select pool_id, user_id::text, verified from public.claims
     where pool_id in ('b_signed', 'b_free') order by 1 desc $$,
  $$ values ('b_signed', 'ann', true), ('b_free', 'bob', false) $$,
  'the claim keeps the verdict'
);
select results_eq(
  $$ select outcome from public.claim_batch(array['b_signed'], array['zoe'], array['r9']) $$, array['claimed'],
  'without verdicts the caller vouches for every user, as it does for a single claim'
);
update public.engine_config set is_active = false where pool_id = 'b_signed';
select results_eq(
  $$ select outcome from public.claim_batch(
       array['b_signed', 'b_signed'], array['cid', 'cid'], array['r4', 'r5'], array[true, false]) order by ordinal $$,
  array['closed', 'auth_required'],
  'a closed pool asks unproven users to sign in first'
);

select * from finish();
rollback;
