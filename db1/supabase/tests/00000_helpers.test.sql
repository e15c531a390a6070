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
    (select string_agg(e::text, ',' order by e.pool_id) from public.pool_details e),
    (select string_agg(o::text, ',' order by o.order_id) from public.orders o),
    (select string_agg(k::text, ',' order by k.order_id, k.n) from public.checkouts k),
    (select string_agg(p::text, ',' order by p.payment_key) from public.order_payments p),
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

-- A pool that is paid for, 1000 a slot, with so many slots.
create function tests.paid_pool(p_pool text, p_slots int, p_rules jsonb default '{}') returns void
language sql as $$
  select public.pool_create(p_pool, p_slots, jsonb_build_object(
    'confirm_by', 'payment', 'price', 1000, 'currency', 'eur', 'payment_tenant', 'stripe', 'hold_sec', 600
  ) || p_rules, 'olga');
$$;

-- A user's request for so many slots, as the server sends it; returns the outcome.
create function tests.ask(p_pool text, p_user text, p_quantity int default 1, p_request text default null) returns text
language sql as $$
  select b.outcome from public.claim_batch(
    array[p_pool], array[p_user], array[p_request], p_quantities => array[p_quantity]
  ) b;
$$;

-- The order of a user in a pool; of several the newest.
create function tests.order_of(p_pool text, p_user text) returns public.orders
language sql as $$
  select o from public.orders o where o.pool_id = p_pool and o.user_id = p_user order by o.order_id desc limit 1;
$$;

-- What the ledger tells of a payment for this order: the right one, unless p_more says otherwise.
create function tests.payment(p_order public.orders, p_id text, p_more jsonb default '{}') returns jsonb
language sql as $$
  select jsonb_build_object(
    'payment_key', coalesce(p_more ->> 'tenant', 'stripe') || '/' || p_id, 'tenant', 'stripe', 'livemode', true,
    'claim_id', (p_order).order_id, 'user_id', (p_order).user_id, 'verified', (p_order).verified::text,
    'amount', (p_order).seats * (p_order).unit_price, 'currency', (p_order).currency
  ) || p_more;
$$;

-- Decision and reason about a payment.
create function tests.settle(p_fact jsonb, p_final boolean default false) returns text
language sql as $$
  select concat_ws(' ', s.decision, s.reason) from public.settle_payment(p_fact, p_final) s;
$$;

-- The hold of an order was over so long ago.
create function tests.order_over(p_order_id uuid, p_since interval default '0') returns void
language sql as $$
  update public.orders o
  set hold_until = now() - p_since, grace_until = now() - p_since + (o.grace_until - o.hold_until)
  where o.order_id = p_order_id;
$$;

-- The checkout of the order that a buyer begins.
create function tests.checkout(p_order public.orders) returns public.checkouts
language sql as $$
  select public.begin_checkout((p_order).order_id, (p_order).user_id, 'https://tickets.example.com');
  select k from public.checkouts k where k.order_id = (p_order).order_id order by k.n desc limit 1;
$$;

-- The states of the claims of an order, in words.
create function tests.states(p_order_id uuid) returns text
language sql as $$
  select string_agg(c.state::text, ' ' order by c.replaces nulls first, c.claim_id) from public.claims c
  where c.order_id = p_order_id;
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
