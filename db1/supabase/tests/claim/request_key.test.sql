-- A request is known by its key: where one part of it differs, it is another request.
begin;
select plan(9);

insert into public.inventory_slots (pool_id) select 'keys' from generate_series(1, 5);

select is(
  (select count(distinct intake.request_key(pool_id, request_id, user_id, verified, secret_hash))::int
   from (values
     ('p', 'r', 'u', false, null::bytea), ('q', 'r', 'u', false, null), ('p', 's', 'u', false, null),
     ('p', 'r', 'v', false, null), ('p', 'r', 'u', true, null), ('p', 'r', 'u', false, sha256('a')),
     ('p', 'r', 'u', false, sha256('b')), ('pr', '', 'u', false, null), ('p', 'ru', '', false, null)
   ) r (pool_id, request_id, user_id, verified, secret_hash)),
  9, 'each part of a request counts, and where one ends and the next begins'
);
select is(
  intake.request_key('p', 'r', 'u', false, sha256('a')), intake.request_key('p', 'r', 'u', false, sha256('a')),
  'the same request has the same key'
);
select ok(
  (select bool_and(intake.request_key('p', 'r-' || n, 'u', false, null) between k.first and k.last)
   from generate_series(1, 500) n, intake.request_keys('r-' || n) k),
  'the keys of a request id lie between its first and its last'
);
select ok(
  (select not bool_or(intake.request_key('p', 'r-' || n, 'u', false, null) between k.first and k.last)
   from generate_series(2, 500) n, intake.request_keys('r-1') k),
  'and those of others do not'
);

select public.claim_resource_and_queue('keys', 'ann', 'r1');
select results_eq(
  $$ select a.outcome from public.claim_batch(array['keys'], array['ann'], array['r1'], array[true]) a $$, array['same'],
  'a request that came alone is the same in a batch'
);
select public.claim_batch(array['keys'], array['bob'], array['r1'], array[true]);
select is(
  public.claim_resource_and_queue('keys', 'bob', 'r1'), (select c.slot_id from public.claims c where c.user_id = 'bob'),
  'and the other way round'
);
select is_empty(
  $$ select c.claim_id from public.claims c where c.pool_id = 'keys' and c.request_key is distinct from
       intake.request_key(c.pool_id, c.request_id, c.user_id, c.verified, c.secret_hash) $$,
  'the key of a claim is that of its columns'
);
select throws_ok(
  $$ insert into public.claims (pool_id, slot_id, user_id, request_id) values ('keys', gen_random_uuid(), 'cy', 'r2') $$,
  '23514', null, 'a request without its key is refused'
);
select throws_ok(
  $$ insert into public.claims (pool_id, slot_id, user_id, request_id, request_key)
     select 'keys', gen_random_uuid(), c.user_id, c.request_id, c.request_key from public.claims c where c.user_id = 'bob' $$,
  '23505', null, 'a request has one claim, also for the owner of the table'
);

select * from finish();
rollback;
