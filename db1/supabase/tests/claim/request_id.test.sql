-- A retried claim returns the same slot.
begin;
select plan(12);

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

insert into public.inventory_slots (pool_id)
select pool from (values ('req'), ('req_other')) p (pool), generate_series(1, 3);
create temp table first_claim as select public.claim_resource_and_queue('req', 'ann', 'r1') as id;
create temp table before as select pg_temp.state() as state;

select is(
  public.claim_resource_and_queue('req', 'ann', 'r1'), (select id from first_claim),
  'the same request id of the same user returns the same slot'
);
select is(pg_temp.state(), (select state from before), 'a retry changes nothing');

select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('req', 'bob', 'r1') $$, 'SL007',
  'a request id of another user is refused'
);
select isnt(
  public.claim_resource_and_queue('req', 'ann', 'r2'), (select id from first_claim),
  'another request id is another slot'
);
select isnt(
  public.claim_resource_and_queue('req_other', 'bob', 'r1'), null,
  'the same request id in another pool is another request'
);

select public.claim_resource_and_queue('req', 'cid', 'r3');
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
select pg_temp.refuses(
  $$ select public.claim_resource_and_queue('req', 'bob', 'r1') $$, 'SL007',
  'a request id of another user is refused in a closed pool as well'
);
update public.engine_config set is_active = true where pool_id = 'req';
insert into public.inventory_slots (pool_id) values ('req');
select isnt(
  public.claim_resource_and_queue('req', 'dan', 'r4'), null,
  'a request id that found the pool sold out can be tried again'
);

select * from finish();
rollback;
