-- A request id does not lead from an unproven user to a proven user's claim, nor the other way round.
begin;
select plan(4);

insert into public.inventory_slots (pool_id) select 'proven' from generate_series(1, 4);
select count(*) from public.claim_batch(array['proven'], array['ann'], array['order-1'], array[true]);
select count(*) from public.claim_batch(array['proven'], array['ann'], array['order-2'], array[false]);

select results_eq(
  $$ select outcome, claim_id from public.claim_batch(array['proven'], array['ann'], array['order-1'], array[false]) $$,
  $$ values ('request_conflict', null::uuid) $$,
  'whoever guesses a proven user''s request id learns nothing'
);
select results_eq(
  $$ select outcome, claim_id from public.claim_batch(array['proven'], array['ann'], array['order-2'], array[true]) $$,
  $$ values ('request_conflict', null::uuid) $$,
  'a proven user is not given a claim that somebody else planted'
);
select results_eq(
  $$ select outcome from public.claim_batch(array['proven'], array['ann'], array['order-1'], array[true]) $$,
  $$ values ('same') $$,
  'the proven user gets the same claim again'
);
select is((select count(*)::int from public.claims where pool_id = 'proven'), 2, 'no further claim was made');

select * from finish();
rollback;
