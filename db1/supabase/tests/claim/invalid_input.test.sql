-- An invalid claim request is refused before anything is touched.
begin;
select plan(14);

insert into public.inventory_slots (pool_id) select 'valid' from generate_series(1, 5);

select tests.refuses(
  $$ select public.claim_resource_and_queue(null, 'ann') $$, 'SL001', 'a claim without a pool is invalid'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('valid', null) $$, 'SL001', 'a claim without a user is invalid'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('valid', '') $$, 'SL001', 'an empty user id is invalid'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('valid', repeat('x', 201)) $$, 'SL001',
  'a user id of 201 characters is invalid'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('valid', 'ann', '') $$, 'SL001', 'an empty request id is invalid'
);
select tests.refuses(
  $$ select public.claim_resource_and_queue('valid', 'ann', repeat('x', 201)) $$, 'SL001',
  'a request id of 201 characters is invalid'
);
select isnt(
  public.claim_resource_and_queue('valid', repeat('é', 200), repeat('x', 200)), null,
  'ids of 200 characters are valid, however many bytes they have'
);
select isnt(
  public.claim_resource_and_queue('valid', $$'; drop table public.claims; --$$), null,
  'a user id is data, whatever it says'
);

select * from finish();
rollback;
