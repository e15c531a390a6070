-- INTAKE, part 5: many buyers in one statement. The usual case is decided and written in sets; whatever is
-- out of the ordinary (a request id twice in the batch, the last slots of a pool, a slot that lied) is handed
-- to intake.claim_one, which knows it already.
-- plpgsql throughout: before Postgres 18 an SQL-language function plans its statements anew at every call.

create type intake.claim_request as (
  ordinal int,
  user_id text,
  request_id text,
  verified boolean
);

-- An intake.claim_answer with the number of its request.
create type intake.numbered_answer as (
  ordinal int,
  outcome text, claim_id uuid, resource_id uuid, state text, claimed_at timestamptz, hold_until timestamptz
);

-- Promise: takes the locks under which these users' claims are counted, and returns the users that somebody else is
-- counting right now: a batch waits for nobody. Second call: has them already. Locks: one advisory lock a user.
create function intake.lock_users(p_pool_id text, p_requests intake.claim_request[]) returns text[]
language plpgsql set search_path = '' as $$
begin
  return array(
    select u.user_id
    from (select distinct r.user_id from unnest(p_requests) r) u
    where not pg_catalog.pg_try_advisory_xact_lock(intake.user_lock_key(p_pool_id, u.user_id))
  );
end
$$;

-- Promise: which of the requests have a claim already. Second call: the same, or more. Locks: none.
-- An array and not a join: the plan is the same index scan whatever the statistics say.
create function intake.known_requests(p_pool_id text, p_requests intake.claim_request[]) returns text[]
language plpgsql stable set search_path = '' as $$
declare
  v_request_ids text[] := array(select r.request_id from unnest(p_requests) r where r.request_id is not null);
begin
  if cardinality(v_request_ids) = 0 then
    return '{}';
  end if;
  return array(
    select c.request_id from public.claims c
    where c.pool_id = p_pool_id and c.request_id is not null and c.request_id = any (v_request_ids)
  );
end
$$;

-- Promise: the requests that can be decided by set: no claim yet, and of equal request ids only the first. The rest
-- is decided one by one, after all that is inserted went in one sorted statement. Second call: the same.
-- Locks: none.
create function intake.usual_requests(p_pool_id text, p_requests intake.claim_request[])
returns intake.claim_request[]
language plpgsql stable set search_path = '' as $$
declare
  v_known text[] := intake.known_requests(p_pool_id, p_requests);
begin
  if v_known = '{}' and not exists (
    select from unnest(p_requests) r where r.request_id is not null group by r.request_id having count(*) > 1
  ) then
    return p_requests;
  end if;
  return array(
    select n.request
    from (
      select r as request, r.ordinal, r.request_id,
        row_number() over (partition by r.request_id order by r.ordinal) as nth
      from unnest(p_requests) r
    ) n
    where n.request_id is null or (n.nth = 1 and n.request_id <> all (v_known))
    order by n.ordinal
  );
end
$$;

-- Promise: those requests whose user stays within the pool's limit, in their order: claims held plus earlier
-- requests of the batch count. Exact under lock_users. Second call: the same. Locks: none.
create function intake.requests_within_limit(p_pool_id text, p_requests intake.claim_request[], p_max_per_user int)
returns intake.claim_request[]
language plpgsql stable set search_path = '' as $$
begin
  return array(
    select n.request
    from (
      select r as request, r.user_id, row_number() over (partition by r.user_id order by r.ordinal) as nth
      from unnest(p_requests) r
    ) n
    where n.nth <= p_max_per_user
      and n.nth + intake.live_claims(p_pool_id, n.user_id, p_max_per_user) <= p_max_per_user
    order by (n.request).ordinal
  );
end
$$;

-- Promise: up to p_wanted free slots from the mark upwards, locked. Second call: other slots. Locks: the slots.
create function intake.pick_slots(
  p_pool_id text,
  p_low_order bigint,
  p_wanted int,
  out slot_ids uuid[],
  out tids tid[],
  out last_order bigint
)
language plpgsql set search_path = '' as $$
begin
  with slot as materialized (
    select s.id, s.ctid as tid, s.sale_order
    from public.inventory_slots s
    where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
    order by s.sale_order
    limit p_wanted
    for update skip locked
  )
  select coalesce(array_agg(slot.id), '{}'), coalesce(array_agg(slot.tid), '{}'), max(slot.sale_order)
  into slot_ids, tids, last_order
  from slot;
end
$$;

-- Promise: claim, slot and message for each pair of request and slot (the arrays run side by side; what is left
-- over of the longer one is left alone). When the database refuses one of them (its request_id or its slot is
-- taken) nothing is written and no row comes back: the caller then asks one by one.
-- Second call with the same request ids: no row. Locks: claims in the order of request ids, so that two batches
-- with the same requests do not deadlock → slots → messages.
create function intake.take_slots(
  p_pool_id text,
  p_requests intake.claim_request[],
  p_slot_ids uuid[],
  p_tids tid[],
  p_hold_until timestamptz,
  p_lane int
)
returns setof intake.numbered_answer
language plpgsql set search_path = '' as $$
declare
  v_requests intake.claim_request[] := p_requests[1 : cardinality(p_slot_ids)];
  -- As for a single claim: ids begin with the time, here once for all of them.
  v_time text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7';
  v_claim_ids uuid[];
  v_msg_ids bigint[];
begin
  select array_agg((v_time || substr(gen_random_uuid()::text, 16))::uuid),
    array_agg((p_lane::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq'))
  into v_claim_ids, v_msg_ids
  from generate_series(1, cardinality(p_slot_ids));
  insert into public.claims (claim_id, pool_id, slot_id, user_id, request_id, verified, hold_until, msg_id)
  select t.claim_id, p_pool_id, t.slot_id, t.user_id, t.request_id, t.verified, p_hold_until, t.msg_id
  from unnest(v_claim_ids, p_slot_ids, v_msg_ids, v_requests)
    as t (claim_id, slot_id, msg_id, ordinal, user_id, request_id, verified)
  order by t.request_id;
  update public.inventory_slots s
  set status = 'RESERVED', locked_by = t.user_id, locked_at = now()
  from unnest(p_tids, v_requests) as t (tid, ordinal, user_id, request_id, verified)
  where s.ctid = t.tid;
  insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
  select t.msg_id, clock_timestamp(), jsonb_build_object(
    'claim_id', t.claim_id, 'pool_id', p_pool_id, 'resource_id', t.slot_id,
    'user_id', t.user_id, 'state', 'queued'
  )
  from unnest(v_claim_ids, p_slot_ids, v_msg_ids, v_requests)
    as t (claim_id, slot_id, msg_id, ordinal, user_id, request_id, verified);
  return query
  select t.ordinal, 'claimed', t.claim_id, t.slot_id, 'queued', now(), p_hold_until
  from unnest(v_claim_ids, p_slot_ids, v_requests)
    as t (claim_id, slot_id, ordinal, user_id, request_id, verified);
exception
  when unique_violation then
    return;
end
$$;

-- Promise: the answers that all requests of a closed, unknown, sold-out or busy pool get. Second call: the same.
-- Locks: none.
create function intake.refuse_all(p_pool intake.pool_gates, p_requests intake.claim_request[])
returns setof intake.numbered_answer
language plpgsql stable set search_path = '' as $$
begin
  return query
  select
    r.ordinal,
    case when p_pool.require_auth and not r.verified then 'auth_required' else p_pool.gate end,
    null::uuid, null::uuid, null::text, null::timestamptz, null::timestamptz
  from unnest(p_requests) r;
end
$$;

-- Promise: an answer to each request, as the set-based twin of intake.claim_one for one pool. A pool whose cache is lost is
-- busy, unless p_rebuild allows to rebuild it here and its lock is free. Second call: as claim_one, request by request.
-- Locks: the pool and users (advisory, none waited for) → slots → claims → messages; sometimes the mark.
create function intake.claim_pool(p_pool_id text, p_requests intake.claim_request[], p_rebuild boolean)
returns setof intake.numbered_answer
language plpgsql set search_path = '' as $$
declare
  -- How far above the mark a batch may have to reach before it moves the mark.
  c_reach constant int := 1000;
  v_pool intake.pool_gates := intake.open_pool(p_pool_id, false, p_rebuild);
  v_busy text[];
  v_usual intake.claim_request[];
  v_slots record;
  v_answers intake.numbered_answer[] := '{}';
begin
  if v_pool.gate = 'busy' then
    return query select * from intake.refuse_all(v_pool, p_requests);
    return;
  end if;
  if v_pool.max_per_user is not null then
    v_busy := intake.lock_users(p_pool_id, p_requests);
    if v_busy <> '{}' then
      return query
      select r.ordinal, 'busy', null::uuid, null::uuid, null::text, null::timestamptz, null::timestamptz
      from unnest(p_requests) r where r.user_id = any (v_busy);
      p_requests := array(select r from unnest(p_requests) r where r.user_id <> all (v_busy));
    end if;
  end if;
  v_usual := intake.usual_requests(p_pool_id, p_requests);
  if v_pool.gate is not null then
    v_answers := array(select r from intake.refuse_all(v_pool, v_usual) r);
  else
    if v_pool.require_auth then
      v_usual := array(select r from unnest(v_usual) r where r.verified);
    end if;
    if v_pool.max_per_user is not null then
      v_usual := intake.requests_within_limit(p_pool_id, v_usual, v_pool.max_per_user);
    end if;
    v_slots := intake.pick_slots(p_pool_id, v_pool.low_order, cardinality(v_usual));
    v_answers := array(
      select t from intake.take_slots(
        p_pool_id, v_usual, v_slots.slot_ids, v_slots.tids, v_pool.hold_until, v_pool.lane
      ) t
    );
    if v_slots.last_order - v_pool.low_order >= c_reach then
      perform intake.advance_mark(p_pool_id);
    end if;
  end if;
  return query select * from unnest(v_answers);
  if cardinality(v_answers) < cardinality(p_requests) then
    return query
    select r.ordinal, a.*
    from (select u.* from unnest(p_requests) u order by u.request_id, u.ordinal) r
    cross join lateral intake.claim_one(p_pool_id, r.user_id, r.request_id, r.verified, false) a
    where r.ordinal not in (select d.ordinal from unnest(v_answers) d);
  end if;
end
$$;

-- Promise: an answer to each request, in any order; ordinal counts the requests from 1. Pools may be mixed.
-- outcome: claimed, same, sold_out, limit, closed, unknown_pool, auth_required, request_conflict, busy (the last
-- slots, this user's count or the rebuild of a lost pool are in the hands of transactions that have not ended: ask again).
-- p_verified says which user ids are proven; left out, the caller vouches for all, as it does in claim_resource_and_queue.
-- Without p_rebuild a lost pool is busy too: a rebuild takes seconds, and the server lets no other pool wait for it.
-- Raises SL001 invalid, SL015 not read committed. Second call with the same request ids: the same claims.
-- Locks: those of intake.claim_pool, pool by pool in the order of their names. It waits only for a transaction that has
-- claimed under the same request id and has not ended: what that comes to is the answer.
-- Definer: service_role needs no rights to the queue.
create function public.claim_batch(
  p_pool_ids text[],
  p_user_ids text[],
  p_request_ids text[],
  p_verified boolean[] default null,
  p_rebuild boolean default true
)
returns table (
  ordinal int, outcome text, claim_id uuid, resource_id uuid, state text,
  claimed_at timestamptz, hold_until timestamptz
)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  -- Each user of a pool with a limit takes a place in the server's lock table.
  c_max_requests constant int := 1000;
  v_pool record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  if cardinality(p_pool_ids) is distinct from cardinality(p_user_ids)
     or cardinality(p_pool_ids) is distinct from cardinality(p_request_ids)
     or coalesce(cardinality(p_pool_ids), 0) <> cardinality(p_verified)
     or cardinality(p_pool_ids) > c_max_requests then
    raise exception 'the arrays must have the same length, at most %', c_max_requests using errcode = 'SL001';
  end if;
  if exists (
    select from unnest(p_pool_ids, p_user_ids, p_request_ids) t (pool_id, user_id, request_id)
    where t.pool_id is null or t.user_id is null or length(t.user_id) not between 1 and 200
      or length(t.request_id) not between 1 and 200
  ) then
    raise exception 'each request needs a pool and a user id; user and request ids have 1 to 200 characters'
      using errcode = 'SL001';
  end if;
  for v_pool in
    select t.pool_id, array_agg(
      (t.ordinal, t.user_id, t.request_id, coalesce(t.verified, p_verified is null))::intake.claim_request order by t.ordinal
    ) as requests
    from unnest(p_pool_ids, p_user_ids, p_request_ids, p_verified)
      with ordinality as t (pool_id, user_id, request_id, verified, ordinal)
    group by t.pool_id
    order by t.pool_id
  loop
    return query select * from intake.claim_pool(v_pool.pool_id, v_pool.requests, p_rebuild);
  end loop;
end
$$;
