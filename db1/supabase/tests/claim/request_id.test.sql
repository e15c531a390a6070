-- A retried claim returns the same slot.
begin;
select plan(11);

insert into public.inventory_slots (pool_id)
select pool from (values ('req'), ('req_other')) p (pool), generate_series(1, 3);
create temp table first_claim as select public.claim_resource_and_queue('req', 'ann', 'r1') as id;
create temp table before as select tests.state() as state;

select is(
  public.claim_resource_and_queue('req', 'ann', 'r1'), (select id from first_claim),
  'the same request id of the same user returns the same slot'
);
select is(tests.state(), (select state from before), 'a retry changes nothing');

select isnt(
  public.claim_resource_and_queue('req', 'bob', 'r1'), (select id from first_claim),
  'the same request id of another user is another request'
);
select isnt(
  public.claim_resource_and_queue('req', 'ann', 'r2'), (select id from first_claim),
  'another request id is another slot'
);
select isnt(
  public.claim_resource_and_queue('req_other', 'bob', 'r1'), null,
  'the same request id in another pool is another request'
);

select is(public.claim_resource_and_queue('req', 'dan', 'r4'), null, 'the pool is sold out');
select is(
  public.claim_resource_and_queue('req', 'ann', 'r1'), (select id from first_claim),
  'a retry is answered although the pool is sold out'
);
insert into public.engine_config (pool_id, is_active, max_per_user) values ('req', false, 1);
select is(
  public.claim_resource_and_queue('req', 'ann', 'r1'), (select id from first_claim),
  'a retry is answered although the pool has closed and the limit is reached'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('req', 'eve', 'r1') $$, 'SL003',
  'another user is told that the pool is closed, and nothing of the request id'
);
update public.engine_config set is_active = true where pool_id = 'req';
insert into public.inventory_slots (pool_id) values ('req');
select isnt(
  public.claim_resource_and_queue('req', 'dan', 'r4'), null,
  'a request id that found the pool sold out can be tried again'
);

select * from finish();
rollback;
