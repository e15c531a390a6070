-- What the other files share, in a schema of its own. Committed, because each file runs in a transaction that it rolls
-- back. "supabase test db" runs files in the order of their names, this one first; run it before a file alone.
-- The API's roles have no way in: a new schema grants them nothing.
drop schema if exists tests cascade;
create schema tests;

-- The secrets that the files name.
insert into webhook.secret_names (name)
select unnest('{A,B,C,D,E,F,NEW,OLD,STRIPE_SECRET}'::text[]) on conflict do nothing;

-- All that a refusal must leave as it is, as one value.
create function tests.state() returns text
language sql as $$
  select md5(concat(
    (select string_agg(t::text, ',' order by t.resource_id) from public.confirmed_tickets t),
    (select string_agg(v::text, ',' order by v.claim_id) from public.voided_tickets v),
    (select string_agg(o::text, ',' order by o.id) from public.claim_outbox o),
    (select string_agg(r::text, ',' order by r.id) from public.refunds_due r),
    (select string_agg(u::text, ',' order by u.claim_id) from public.ticket_uses u),
    (select string_agg(c::text, ',' order by c.id) from public.credit_ledger c)
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

-- Runs a query as the API does for a caller with this role and this user id in its token.
create function tests.as_caller(p_role text, p_sub text, p_sql text) returns text
language plpgsql as $$
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

-- A payload for slot and claim by number; claim 0 is a payload without a claim_id.
create function tests.ticket(p_slot int, p_user text, p_claim int default 0, p_pool text default 'p') returns jsonb
language sql as $$
  select jsonb_build_object(
    'resource_id', '00000000-0000-4000-8000-' || lpad(p_slot::text, 12, '0'), 'pool_id', p_pool, 'user_id', p_user
  ) || case when p_claim = 0 then '{}' else
    jsonb_build_object('claim_id', '10000000-0000-4000-8000-' || lpad(p_claim::text, 12, '0'))
  end;
$$;

create function tests.outcomes(variadic p_tickets jsonb[]) returns text
language sql as $$
  select string_agg(b.outcome, ' ' order by b.ordinal) from public.finalize_batch(to_jsonb(p_tickets)) b;
$$;

-- Lets an event about an object of Stripe take its effect. Events arrive in the order of these calls.
create sequence tests.arrivals;
create function tests.apply_payment(p_type text, p_object jsonb, p_occurred_at timestamptz default null) returns text
language sql as $$
  select webhook.apply_payment(jsonb_populate_record(null::public.webhook_events, jsonb_build_object(
    'provider', 'stripe', 'event_id', 'evt_' || n, 'event_type', p_type, 'arrival', n, 'received_at', now(),
    'occurred_at', p_occurred_at, 'payload', jsonb_build_object('data', jsonb_build_object('object', p_object))
  ))) from nextval('tests.arrivals') n;
$$;

-- The same of the payment pi_1 by ann. p_object adds to the object or takes its place.
create function tests.apply(p_type text, p_object jsonb default '{}', p_occurred_at timestamptz default null) returns text
language sql as $$
  select tests.apply_payment(
    p_type, '{"id": "pi_1", "amount": 1000, "currency": "usd", "metadata": {"user_id": "ann"}}' || p_object, p_occurred_at
  );
$$;

-- How the payment pi_1 stands, and what that makes for its user.
create function tests.payment() returns text
language sql as $$
  select p.state || ' ' || b.amount from public.payments p, webhook.balance('ann') b where p.object_id = 'pi_1';
$$;

-- ORDERS. The order and its first claim by number.
create function tests.claim_id(p_claim int) returns uuid
language sql as $$
  select ('10000000-0000-4000-8000-' || lpad(p_claim::text, 12, '0'))::uuid;
$$;

-- ann pays 2000 for the order by the payment pi_1. p_object adds to the object or takes its place.
create function tests.pay(p_order int, p_object jsonb default '{}', p_type text default 'payment_intent.succeeded') returns text
language sql as $$
  select tests.apply_payment(p_type, jsonb_build_object(
    'id', 'pi_1', 'amount', 2000, 'amount_received', 2000, 'currency', 'usd', 'livemode', true, 'metadata', jsonb_build_object(
      'user_id', 'ann', 'claim_id', tests.claim_id(p_order), 'verified', 'true', 'checkout', tests.claim_id(p_order) || ':1'
    )) || p_object);
$$;

-- The intake has decided about the payment: by default its order has the claims p_claims.
create function tests.settle(p_decision text, p_claims int[] default '{1,2}', p_result jsonb default '{}', p_payment text default 'pi_1')
returns text
language sql as $$
  select public.outbox_finish(o.id, o.token, jsonb_build_object(
    'decision', p_decision, 'reason', 'as told', 'order_id', tests.claim_id(p_claims[1]), 'is_own', true, 'refund_by', 'sluice',
    'claim_ids', array(select tests.claim_id(c) from unnest(p_claims) c)) || p_result)
  from public.outbox_take(100, 60) o
  where o.id = 'settle:stripe/' || p_payment;
$$;

-- What public.void_targets of the intake says about claims of ann at 1000 each; slot and claim have one number.
create function tests.targets(variadic p_claims int[]) returns jsonb
language sql as $$
  select jsonb_agg(tests.ticket(c, 'ann', c) || jsonb_build_object('verified', true, 'order_id', tests.claim_id(p_claims[1]),
    'payment_key', 'stripe/pi_1', 'unit_price', 1000, 'currency', 'usd')) from unnest(p_claims) c;
$$;

-- ann has paid for the order 1, and has its two tickets.
create function tests.sell_two() returns text
language sql as $$
  select tests.pay(1);
  select tests.settle('funds');
  select tests.outcomes(tests.ticket(1, 'ann', 1) || jsonb_build_object('order_id', tests.claim_id(1)),
    tests.ticket(2, 'ann', 2) || jsonb_build_object('order_id', tests.claim_id(1)));
$$;

-- Stripe tells of a dispute about pi_1 by its number, with all that its balance transactions moved so far.
create function tests.dispute_of(p_n int, p_status text, variadic p_moved int[]) returns text
language sql as $$
  select tests.apply_payment('charge.dispute.updated', jsonb_build_object(
    'id', 'dp_' || p_n, 'payment_intent', 'pi_1', 'amount', 2000, 'currency', 'usd', 'status', p_status, 'balance_transactions', (
      select jsonb_agg(jsonb_build_object('id', 'txn_' || p_n || '_' || n, 'amount', m, 'currency', 'usd'))
      from unnest(p_moved) with ordinality as t (m, n)
    )));
$$;

-- The same of the first dispute.
create function tests.dispute(p_status text, variadic p_moved int[]) returns text
language sql as $$
  select tests.dispute_of(1, p_status, variadic p_moved);
$$;

-- Stripe tells of a refund of pi_1 that was made in its dashboard.
create function tests.refund_outside(p_id text, p_amount int, p_status text default 'succeeded') returns text
language sql as $$
  select tests.apply_payment(case p_status when 'failed' then 'refund.failed' else 'refund.created' end, jsonb_build_object(
    'id', p_id, 'payment_intent', 'pi_1', 'amount', p_amount, 'currency', 'usd', 'status', p_status, 'metadata', '{}'::jsonb));
$$;

-- An operator takes claims of the order 1 back, and the courier carries that. The outcome of each.
create function tests.take_back(p_refund boolean, variadic p_claims int[]) returns text
language sql as $$
  select string_agg(v.outcome, ' ')
  from public.request_void(array(select tests.claim_id(c) from unnest(p_claims) c), p_refund, 'bob', 'no show') as id,
    public.void_order_tickets(id, tests.targets(variadic p_claims)) v;
$$;

-- What the ledger says of the payment pi_1, and what of it is owed. At rest both are the same.
create function tests.owed() returns text
language sql as $$
  select coalesce((select sum(c.amount) from public.credit_ledger c where c.object_id = 'pi_1'), 0) || ' '
    || coalesce((select sum(r.amount) from public.refunds_due r
      where r.payment_key = 'stripe/pi_1' and r.state in ('due', 'review', 'failed')), 0);
$$;

-- All events as one value.
create function tests.events() returns text
language sql as $$
  select md5(string_agg(e::text, ',' order by e.id)) from public.webhook_events e;
$$;

-- Takes up to p_limit due events of each lane, as a worker with these TypeScript handlers does; null takes of all lanes.
create function tests.take(p_limit int, p_handlers text[] default '{}') returns setof webhook.taken_event
language sql as $$
  select t.*
  from (
    select array_agg(l.lane) as lanes, array_agg(p_limit) as wanted
    from webhook.event_lanes() l
    where p_handlers is null or l.kind is distinct from 'typescript' or l.handler_name = any (p_handlers)
  ) w
  cross join lateral webhook.take_events(w.lanes, w.wanted) t;
$$;

-- A handler that does what the payload says, and its effects.
create table tests.effects (event_id text primary key);
create function tests.act(p_event public.webhook_events) returns text
language plpgsql as $$
begin
  insert into tests.effects (event_id) values (p_event.event_id);
  if p_event.payload ? 'raise' then
    raise exception 'as told' using errcode = p_event.payload ->> 'raise';
  end if;
  return p_event.payload ->> 'skip';
end
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
