-- One user holds no more slots of a pool than the pool allows.
begin;
select plan(15);

insert into public.engine_config (pool_id, max_per_user) values ('limit', 2), ('limit_other', 2);
insert into public.inventory_slots (pool_id)
select pool from (values ('limit'), ('limit_other')) p (pool), generate_series(1, 10);

select isnt(public.claim_resource_and_queue('limit', 'ann', 'a1'), null, 'the first slot is within the limit');
select isnt(public.claim_resource_and_queue('limit', 'ann', 'a2'), null, 'the second slot is within the limit');
select tests.refuses(
  $$ select public.claim_resource_and_queue('limit', 'ann', 'a3') $$, 'SL004', 'the third slot is over the limit'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('limit', 'ann') $$, 'SL004',
  'leaving the request id out does not go round the limit'
);
select is(
  public.claim_resource_and_queue('limit', 'ann', 'a1'),
  (select slot_id from public.claims where pool_id = 'limit' and request_id = 'a1'),
  'a retry of a claim within the limit is answered'
);
select isnt(public.claim_resource_and_queue('limit', 'bob'), null, 'another user has a limit of its own');
select isnt(public.claim_resource_and_queue('limit_other', 'ann'), null, 'another pool has a limit of its own');

update public.claims set state = 'committed' where pool_id = 'limit' and request_id = 'a2';
select tests.refuses(
  $$ select public.claim_resource_and_queue('limit', 'ann', 'a3') $$, 'SL004', 'a ticket counts towards the limit'
);
select lives_ok(
  $$ select public.release_own_claim(claim_id, 'ann') from public.claims where pool_id = 'limit' and request_id = 'a1' $$,
  'a claim can be released'
);
select isnt(public.claim_resource_and_queue('limit', 'ann', 'a3'), null, 'a released claim no longer counts');

update public.engine_config set max_per_user = null where pool_id = 'limit';
select isnt(public.claim_resource_and_queue('limit', 'ann', 'a4'), null, 'without a limit the user may go on');
select throws_ok(
  $$ update public.engine_config set max_per_user = 0 where pool_id = 'limit' $$, '23514', null,
  'a limit of zero is refused: a pool is closed with is_active'
);

select * from finish();
rollback;
