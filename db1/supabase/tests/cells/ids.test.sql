-- The ids of claims carry the digits of their pool, whatever way they are made.
begin;
select plan(4);
insert into public.inventory_slots (pool_id) select 'digits' from generate_series(1, 5);
select public.claim_resource_and_queue('digits', 'ann');
select claim_id from public.claim_batch('{digits, digits}', '{bob, cid}', '{null, null}');
select results_eq(
  $$ select distinct substr(c.claim_id::text, 15, 4) from public.claims c where c.pool_id = 'digits' $$,
  $$ select '7' || intake.pool_digits('digits') $$, 'one by one and in a batch');
select is((select count(distinct c.claim_id) from public.claims c where c.pool_id = 'digits'), 3::bigint, 'no two are the same');
select ok((select bool_and(substr(c.claim_id::text, 20, 1) in ('8', '9', 'a', 'b')) from public.claims c where c.pool_id = 'digits'),
  'they are UUIDs of the usual variant');
select isnt(intake.pool_digits('digits'), intake.pool_digits('other'), 'the control: another pool has other digits');
select * from finish();
rollback;
