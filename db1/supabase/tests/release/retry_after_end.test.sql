-- A request id whose claim has ended does not get its old slot back: that may be another user's by now.
begin;
select plan(3);

insert into public.inventory_slots (pool_id) select 'ended' from generate_series(1, 2);
select public.claim_resource_and_queue('ended', 'ann', 'r1');
select intake.give_back_claim(claim_id) from public.claims where pool_id = 'ended';
select count(*) from public.claim_batch(array['ended', 'ended'], array['bob', 'cid'], array['b', 'c']);

select throws_ok(
  $$ select public.claim_resource_and_queue('ended', 'ann', 'r1') $$, 'SL012', null::text,
  'a retry of a released claim is refused'
);
select results_eq(
  $$ select outcome, state from public.claim_batch(array['ended'], array['ann'], array['r1']) $$,
  $$ values ('same', 'released') $$,
  'a batch answers with the claim and says that it is released'
);
select is(
  (select count(*)::int from public.claims where pool_id = 'ended' and freed_at is null), 2,
  'neither makes a new claim'
);

select * from finish();
rollback;
