-- Limits count each slot of a group, held ones and those of one batch included.
begin;
select plan(10);

select public.pool_create('most', 20, '{"max_quantity": 5, "max_per_user": 4}', 'olga');
select is(tests.ask('most', 'ann', 5), 'limit', 'a group that is more than one user may have');
select is(tests.ask('most', 'ann', 3), 'claimed', 'one that is not');
select is(tests.ask('most', 'ann', 2), 'limit', 'a second one counts on top');
select is(tests.ask('most', 'ann', 1), 'claimed', 'up to the limit');
select is(tests.ask('most', 'ann', 1), 'limit', 'and no further');
select bag_eq(
  $$ select outcome from public.claim_batch('{most,most,most}', '{bob,bob,bob}', '{a,b,c}', p_quantities => '{3,2,1}') $$,
  $$ values ('claimed'), ('limit'), ('claimed') $$, 'requests of one batch count together'
);

select public.pool_create('address', 20, '{"max_quantity": 5, "max_per_address": 4}', 'olga');
select bag_eq(
  $$ select outcome from public.claim_batch('{address,address,address}', '{ann,bob,cid}', '{a,b,c}', '{f,f,f}',
       p_proofs => '[{"address": "203.0.113.1"}, {"address": "203.0.113.1"}, {"address": "203.0.113.2"}]', p_quantities => '{3,2,5}') $$,
  $$ values ('claimed'), ('address_limit'), ('address_limit') $$, 'so it is for addresses'
);
select tests.paid_pool('held_most', 20, '{"max_quantity": 5, "max_per_user": 4}');
select is(tests.ask('held_most', 'ann', 3), 'claimed', 'slots that are held');
select is(tests.ask('held_most', 'ann', 2), 'limit', 'count as well');
select public.release_own_claim((tests.order_of('held_most', 'ann')).order_id, 'ann');
select is(tests.ask('held_most', 'ann', 4), 'claimed', 'until they are given back');

select * from finish();
rollback;
