-- A claim that is with the bridge does not expire under its hands.
begin;
select plan(7);

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

insert into public.engine_config (pool_id, hold_sec, validation_webhook_url) values
  ('direct', 60, null), ('validated', 60, 'https://example.com/validate');
insert into public.inventory_slots (pool_id)
select pool from (values ('direct'), ('validated')) p (pool), generate_series(1, 3);
select public.claim_resource_and_queue('direct', 'ann');
select public.claim_resource_and_queue('validated', 'ann');
select count(*) from public.intake_queue_read(30, 10000);
update public.claims set hold_until = now() - interval '1 second' where pool_id in ('direct', 'validated');

create temp table before as select pg_temp.state() as state;
select is(public.expire_holds(), 0, 'a claim whose message is in the hands of a worker does not expire');
select is(pg_temp.state(), (select state from before), 'and nothing changes');

update pgmq.q_intake_queue set vt = clock_timestamp() - interval '1 second'
where message ->> 'pool_id' in ('direct', 'validated');
select is(
  public.expire_holds(), 1,
  'once the lease has run out the claim that is validated first expires, the other may be in the ledger'
);
select results_eq(
  $$ select pool_id, state::text from public.claims where pool_id in ('direct', 'validated') order by pool_id $$,
  $$ values ('direct', 'queued'), ('validated', 'expired') $$,
  'only the claim of the validated pool has ended'
);
select results_eq(
  $$ select message ->> 'pool_id' from pgmq.q_intake_queue where message ->> 'pool_id' in ('direct', 'validated') $$,
  array['direct'],
  'only its message is withdrawn'
);

select public.claim_resource_and_queue('validated', 'bob');
update public.claims set hold_until = now() - interval '1 second', state = 'validated'
where pool_id = 'validated' and user_id = 'bob';
create temp table validated as select pg_temp.state() as state;
select is(public.expire_holds(), 0, 'a claim that was validated does not expire');
select is(pg_temp.state(), (select state from validated), 'and the validated claim keeps slot and message');

select * from finish();
rollback;
