-- What the other files share, in a schema of its own. Committed, because each file runs in a transaction that it rolls
-- back. "supabase test db" runs files in the order of their names, this one first; run it before a file alone.
-- The API's roles have no way in: a new schema grants them nothing.
drop schema if exists tests cascade;
create schema tests;

-- All that a refusal must leave as it is, as one value.
create function tests.state() returns text
language sql as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(m::text, ',' order by m.slot_id) from public.slot_manifest m),
    (select string_agg(g::text, ',' order by g.pool_id) from public.engine_config g),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d),
    (select string_agg(a::text, ',' order by a.id) from audit.audit_logs a)
  ));
$$;

-- The statement raises this SQLSTATE, and changes nothing.
create function tests.refuses(p_sql text, p_code text, p_name text) returns setof text
language plpgsql as $$
declare
  v_before text := tests.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(tests.state(), v_before, p_name || ', and nothing changes');
end
$$;

-- Runs a query as the API does for a caller with this role, this user id and whatever else in its token.
create function tests.as_caller(p_role text, p_sub text, p_sql text, p_more jsonb default '{}') returns text
language plpgsql as $$
declare
  v_answer text;
begin
  perform set_config('request.jwt.claims', (jsonb_build_object('role', p_role, 'sub', p_sub) || p_more)::text, true);
  perform set_config('role', p_role, true);
  execute p_sql into v_answer;
  perform set_config('role', 'none', true);
  return v_answer;
end
$$;

-- A call that reads a page's worth of blocks, however much there is. Twice: the first has to look up the catalog.
create function tests.is_cheap(p_call text) returns boolean
language plpgsql as $$
declare
  c_blocks_max constant int := 100;
  v_plan json;
begin
  for i in 1..2 loop
    execute 'explain (analyze, buffers, format json) select * from ' || p_call into v_plan;
  end loop;
  return (v_plan #>> '{0,Plan,Shared Hit Blocks}')::int + (v_plan #>> '{0,Plan,Shared Read Blocks}')::int < c_blocks_max;
end
$$;

-- No message and no dead letter, whatever a file before this run has left.
create function tests.empty_queues() returns void
language sql as $$
  delete from pgmq.q_intake_queue;
  delete from pgmq.q_intake_dlq;
$$;

-- A user's claim in a pool; of several the newest.
create function tests.claim_of(p_pool text, p_user text) returns public.claims
language sql as $$
  select c from public.claims c where c.pool_id = p_pool and c.user_id = p_user
  order by c.claimed_at desc, c.freed_at nulls first limit 1;
$$;

create function tests.message_of(p_user text) returns jsonb
language sql as $$
  select q.message from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user;
$$;

create function tests.letter_of(p_user text) returns bigint
language sql as $$
  select d.msg_id from pgmq.q_intake_dlq d where d.message ->> 'user_id' = p_user;
$$;

-- Moves a user's message to the dead letters.
create function tests.kill(p_user text) returns bigint
language sql as $$
  select public.intake_route_to_dlq(
    q.msg_id, q.message || '{"reason": "planted", "seen": 2, "tried": 2, "last_error": "x"}', 3
  )
  from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user;
$$;

create function tests.replay(p_user text, p_dry_run boolean default false) returns text
language sql as $$
  select outcome from public.replay_dead_letters(array[tests.letter_of(p_user)], 'olga', 'fixed', p_dry_run);
$$;

-- Up to as many messages as are wanted of each lane, as a worker takes them.
create function tests.take(p_wanted int, p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb, claim_state text)
language sql as $$
  select t.*
  from (select array(select l.lane from public.bridge_lanes() l) as lanes) a
  cross join lateral public.bridge_take(a.lanes, array_fill(p_wanted, array[cardinality(a.lanes)]), p_lease_sec) t;
$$;

-- Ends the delivery of one user's message with a verdict, under the lease that read_ct names. The caller keeps what
-- tests.take gave it in a temporary table "taken".
create function tests.finish(
  p_user text, p_read_ct int, p_verdict text, p_reason text default null, p_delay_ms int default 0
)
returns text
language plpgsql as $$
begin
  return (
    select f.outcome
    from pg_temp.taken t
    cross join lateral public.bridge_finish(
      array[t.msg_id], array[p_read_ct], array[p_verdict], array[p_reason], array[p_delay_ms]
    ) f
    where t.message ->> 'user_id' = p_user
  );
end
$$;

-- The status of the slot that a message in "taken" is about.
create function tests.slot_of(p_user text) returns text
language plpgsql as $$
begin
  return (
    select s.status::text
    from public.inventory_slots s join pg_temp.taken t on s.id = (t.message ->> 'resource_id')::uuid
    where t.message ->> 'user_id' = p_user
  );
end
$$;

create function tests.slots(p_pool_id text) returns table (id uuid, status text, locked_by text)
language sql as $$
  select s.id, s.status::text, s.locked_by from public.inventory_slots s where s.pool_id = p_pool_id order by s.id;
$$;

begin;
select plan(2);
select has_schema('tests'::name, 'the helpers are there for the files that follow');
select is_empty(
  $$ select role from unnest(array['anon', 'authenticated', 'service_role']) role
     where has_schema_privilege(role, 'tests', 'usage') $$, 'and for no caller of the API'
);
select * from finish();
rollback;
