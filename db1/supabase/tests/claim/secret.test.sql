-- An unverified claim belongs to the holder of its secret.
begin;
select plan(14);

insert into public.inventory_slots (pool_id) select 'secret' from generate_series(1, 9);

-- A claim of an unverified user with this secret, as the server makes it.
create function pg_temp.claim(p_user text, p_request text, p_secret text)
returns table (outcome text, claim_id uuid)
language sql as $$
  select b.outcome, b.claim_id from public.claim_batch(array['secret'], array[p_user], array[p_request], array[false], true, jsonb_build_array(
    jsonb_strip_nulls(jsonb_build_object('address', '203.0.113.1', 'secret_hash', encode(sha256(p_secret::bytea), 'hex')))
  )) b;
$$;
create temp table mine as select * from pg_temp.claim('ann', 'r1', 'my own secret words');
create temp table open_one as select * from pg_temp.claim('ann', 'r1', null);

select results_eq(
  $$ select a.outcome, a.claim_id from pg_temp.claim('ann', 'r1', 'my own secret words') a $$,
  $$ select 'same', claim_id from mine $$, 'the same secret repeats the request'
);
select results_eq(
  $$ select a.outcome, a.claim_id <> m.claim_id from mine m, pg_temp.claim('ann', 'r1', 'another secret text') a $$,
  $$ values ('claimed', true) $$, 'another secret is another request'
);
select isnt((select claim_id from open_one), (select claim_id from mine), 'no secret is another request, too');
select results_eq(
  $$ select a.outcome, a.claim_id from pg_temp.claim('ann', 'r1', null) a $$,
  $$ select 'same', claim_id from open_one $$, 'a request without a secret is repeated without one'
);
select is(
  (select c.secret_hash from public.claims c join mine m using (claim_id)), sha256('my own secret words'),
  'the claim keeps a hash'
);
select results_eq(
  $$ select g.secret_matches from mine m, public.get_claim(m.claim_id, sha256('my own secret words')) g
     union all select g.secret_matches from mine m, public.get_claim(m.claim_id, sha256('another')) g
     union all select g.secret_matches from mine m, public.get_claim(m.claim_id) g
     union all select g.secret_matches from open_one o, public.get_claim(o.claim_id, sha256('another')) g $$,
  array[true, false, false, null], 'get_claim tells whether the secret is right, or that there is none'
);
select tests.refuses(
  format('select public.release_own_claim(%L, ''ann'', null, sha256(''another''))', (select claim_id from mine)), 'SL006',
  'a wrong secret does not release it'
);
select tests.refuses(
  format('select public.release_own_claim(%L, ''ann'')', (select claim_id from mine)), 'SL006',
  'the name of its user does not release it'
);
select tests.refuses(
  format('select public.release_own_claim(%L, ''ann'', null, sha256(''another''))', (select claim_id from open_one)), 'SL006',
  'a claim without a secret is released by no secret'
);
select is(
  (select r.state from mine m, public.release_own_claim(m.claim_id, 'ann', null, sha256('my own secret words')) r), 'released',
  'the right secret releases it'
);
select is(
  (select r.state from open_one o, public.release_claim_as_operator(o.claim_id, 'olga') r), 'released',
  'an operator releases the one without'
);

select * from finish();
rollback;
