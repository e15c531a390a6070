-- Who may claim for whom.
begin;
select plan(14);

-- All that a claim can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create function pg_temp.refuses(p_sql text, p_code text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := pg_temp.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(pg_temp.state(), v_before, p_name || ', and nothing changes');
end
$$;

-- Runs a query as the API does for a caller with this role and this user id in its token.
create function pg_temp.as_caller(p_role text, p_sub text, p_sql text)
returns text
language plpgsql
as $$
declare
  v_answer text;
begin
  perform set_config('request.jwt.claims', jsonb_build_object('role', p_role, 'sub', p_sub)::text, true);
  perform set_config('role', p_role, true);
  execute p_sql into v_answer;
  perform set_config('role', 'none', true);
  return v_answer;
end
$$;

insert into public.engine_config (pool_id, require_auth) values ('open_to_all', false), ('signed_in', true);
insert into public.inventory_slots (pool_id)
select pool from (values ('open_to_all'), ('signed_in')) p (pool), generate_series(1, 5);

select isnt(
  pg_temp.as_caller('anon', null, $$ select public.claim_resource_and_queue('open_to_all', 'ann') $$), null,
  'anon may claim where the pool allows it'
);
select is(
  (select verified from public.claims where pool_id = 'open_to_all' and user_id = 'ann'), false,
  'a claim of anon is not verified'
);
select pg_temp.refuses(
  $$ select pg_temp.as_caller('anon', null, 'select public.claim_resource_and_queue(''signed_in'', ''ann'')') $$,
  'SL005', 'anon may not claim where the pool wants signed-in users'
);
select isnt(
  pg_temp.as_caller('authenticated', 'bob', $$ select public.claim_resource_and_queue('signed_in', 'bob') $$), null,
  'a signed-in user claims for itself'
);
select is(
  (select verified from public.claims where pool_id = 'signed_in' and user_id = 'bob'), true,
  'a claim of a signed-in user is verified'
);
select pg_temp.refuses(
  $$ select pg_temp.as_caller('authenticated', 'bob',
       'select public.claim_resource_and_queue(''signed_in'', ''ann'')') $$,
  'SL006', 'a signed-in user may not claim for another'
);
select pg_temp.refuses(
  $$ select pg_temp.as_caller('authenticated', 'bob',
       'select public.claim_resource_and_queue(''open_to_all'', ''ann'')') $$,
  'SL006', 'a signed-in user may not claim for another in an open pool either'
);
select pg_temp.refuses(
  $$ select pg_temp.as_caller('authenticated', null,
       'select public.claim_resource_and_queue(''open_to_all'', ''ann'')') $$,
  'SL006', 'a token without a user id may not claim'
);
select isnt(
  pg_temp.as_caller('service_role', null, $$ select public.claim_resource_and_queue('signed_in', 'cid') $$), null,
  'service_role vouches for its users'
);
select is(
  (select verified from public.claims where pool_id = 'signed_in' and user_id = 'cid'), true,
  'a claim that service_role vouches for is verified'
);

select * from finish();
rollback;
