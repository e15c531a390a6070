-- A claim is released by its owner or an operator, and by nobody else.
begin;
select plan(20);

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

insert into public.inventory_slots (pool_id) select 'rel' from generate_series(1, 5);
create temp table mine as
select claim_id, resource_id, ordinal from public.claim_batch(
  array_fill('rel'::text, array[4]), array['ann', 'ann', 'ann', 'ann'], array['1', '2', '3', '4']
);
create function pg_temp.mine(p_ordinal int) returns uuid language sql
as $$ select claim_id from mine where ordinal = p_ordinal $$;

select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.mine(1), 'bob') $$, 'SL006', 'another user may not release a claim'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(gen_random_uuid(), 'ann') $$, 'SL008', 'a claim that is not there is refused'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(null) $$, 'SL008', 'no claim at all is refused'
);
select results_eq(
  $$ select claim_id, user_id, state, end_reason, ended_at from public.release_own_claim(pg_temp.mine(1), 'ann') $$,
  $$ select pg_temp.mine(1), 'ann', 'released', 'released', now() $$,
  'the owner releases its claim'
);
select results_eq(
  $$ select state, end_reason from public.release_own_claim(pg_temp.mine(2), null, 'show cancelled') $$,
  $$ values ('released', 'show cancelled') $$,
  'an operator releases any claim and gives the reason'
);
select pg_temp.refuses(
  format($$ select pg_temp.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'', ''bob'')') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user may not release the claim of another'
);
select pg_temp.refuses(
  format($$ select pg_temp.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'', ''ann'')') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user may not pass for another'
);
select pg_temp.refuses(
  format($$ select pg_temp.as_caller('authenticated', 'bob',
       'select state from public.release_own_claim(''%s'')') $$,
    pg_temp.mine(3)), 'SL006', 'a signed-in user is no operator'
);
select pg_temp.refuses(
  format($$ select pg_temp.as_caller('authenticated', null,
       'select state from public.release_own_claim(''%s'')') $$,
    pg_temp.mine(3)), 'SL006', 'a token without a user id is no operator'
);
select pg_temp.refuses(
  format($$ select pg_temp.as_caller('anon', null, 'select state from public.release_own_claim(''%s'', ''ann'')') $$,
    pg_temp.mine(3)), '42501', 'anon may not release at all'
);
select is(
  pg_temp.as_caller('authenticated', 'ann',
    format('select state from public.release_own_claim(%L, ''ann'')', pg_temp.mine(3))), 'released',
  'a signed-in user releases its own claim'
);
select is(
  pg_temp.as_caller('service_role', null, format('select state from public.release_own_claim(%L)', pg_temp.mine(4))),
  'released', 'service_role is an operator'
);

select * from finish();
rollback;
