-- Who may claim for whom.
begin;
select plan(17);

insert into public.engine_config (pool_id, require_auth) values ('open_to_all', false), ('signed_in', true);
insert into public.inventory_slots (pool_id)
select pool from (values ('open_to_all'), ('signed_in')) p (pool), generate_series(1, 5);

select isnt(
  tests.as_caller('anon', null, $$ select public.claim_resource_and_queue('open_to_all', 'ann') $$), null,
  'anon may claim where the pool allows it'
);
select is(
  (select verified from public.claims where pool_id = 'open_to_all' and user_id = 'ann'), false,
  'a claim of anon is not verified'
);
select tests.refuses(
  $$ select tests.as_caller('anon', null, 'select public.claim_resource_and_queue(''signed_in'', ''ann'')') $$,
  'SL005', 'anon may not claim where the pool wants signed-in users'
);
select isnt(
  tests.as_caller('authenticated', 'bob', $$ select public.claim_resource_and_queue('signed_in', 'bob') $$), null,
  'a signed-in user claims for itself'
);
select is(
  (select verified from public.claims where pool_id = 'signed_in' and user_id = 'bob'), true,
  'a claim of a signed-in user is verified'
);
select tests.refuses(
  $$ select tests.as_caller('authenticated', 'bob',
       'select public.claim_resource_and_queue(''signed_in'', ''ann'')') $$,
  'SL006', 'a signed-in user may not claim for another'
);
select tests.refuses(
  $$ select tests.as_caller('authenticated', 'bob',
       'select public.claim_resource_and_queue(''open_to_all'', ''ann'')') $$,
  'SL006', 'a signed-in user may not claim for another in an open pool either'
);
select tests.refuses(
  $$ select tests.as_caller('authenticated', null,
       'select public.claim_resource_and_queue(''open_to_all'', ''ann'')') $$,
  'SL006', 'a token without a user id may not claim'
);
select tests.refuses(
  $$ select tests.as_caller('authenticated', 'guest-1',
       'select public.claim_resource_and_queue(''signed_in'', ''guest-1'')', '{"is_anonymous": true}') $$,
  'SL016', 'an anonymous sign-in is not enough'
);
update public.engine_config set allow_guests = true where pool_id = 'signed_in';
select isnt(
  tests.as_caller('authenticated', 'guest-1',
    $$ select public.claim_resource_and_queue('signed_in', 'guest-1') $$, '{"is_anonymous": true}'), null,
  'it is where the pool allows guests'
);
select isnt(
  tests.as_caller('service_role', null, $$ select public.claim_resource_and_queue('signed_in', 'cid') $$), null,
  'service_role vouches for its users'
);
select is(
  (select verified from public.claims where pool_id = 'signed_in' and user_id = 'cid'), true,
  'a claim that service_role vouches for is verified'
);

select * from finish();
rollback;
