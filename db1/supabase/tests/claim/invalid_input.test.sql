-- What is no claim request is refused before anything is touched.
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

insert into public.inventory_slots (pool_id) select 'valid' from generate_series(1, 5);

select pg_temp.refuses(
  $$ select public.claim_resource_and_queue(null, 'ann') $$, 'SL001', 'a claim without a pool is invalid'
);
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('valid', null) $$, 'SL001', 'a claim without a user is invalid'
);
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('valid', '') $$, 'SL001', 'an empty user id is invalid'
);
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('valid', repeat('x', 201)) $$, 'SL001',
  'a user id of 201 characters is invalid'
);
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('valid', 'ann', '') $$, 'SL001', 'an empty request id is invalid'
);
select pg_temp.refuses(
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
