-- INTAKE, part 5: many buyers in one statement. The usual case is decided and written in sets; whatever is
-- out of the ordinary (a request id twice in the batch, the last slots of a pool, a slot that lied) is handed
-- to intake.claim_one, which knows it already.
-- plpgsql throughout: before Postgres 18 an SQL-language function plans its statements anew at every call.

-- An intake.claim_answer with the number of its request.
create type intake.numbered_answer as (
  ordinal int,
  outcome text, claim_id uuid, resource_id uuid, state text, claimed_at timestamptz, hold_until timestamptz,
  group_claims jsonb
);

-- Promise: the requests that can be decided by set: for one slot, no claim yet, and of equal requests, or requests with one
-- challenge, only the first. The rest is decided one by one, after all that is inserted went in one sorted statement. Second call: the same.
-- Locks: none.
-- For what is known a look in the index for each and not a join: the plan is the same whatever the statistics say.
create function intake.usual_requests(p_requests intake.claim_request[]) returns intake.claim_request[]
language plpgsql stable set search_path = '' as $$
declare
  v_known int[];
  v_all_are_usual boolean;
begin
  select array_agg(r.ordinal) filter (where (select true from public.claims c where c.request_key = r.request_key)),
    count(r.request_key) = count(distinct r.request_key) and count(r.challenge) = 0 and count(r.quantity) = 0
  into v_known, v_all_are_usual
  from unnest(p_requests) r;
  if v_known is null and v_all_are_usual then
    return p_requests;
  end if;
  return array(
    select n.request
    from (
      select r as request, r.ordinal, r.request_key, r.challenge, r.quantity,
        row_number() over (partition by r.request_key order by r.ordinal) as nth,
        row_number() over (partition by r.challenge order by r.ordinal) as nth_of_challenge
      from unnest(p_requests) r
    ) n
    where n.quantity is null and (n.request_key is null or n.nth = 1) and n.ordinal <> all (coalesce(v_known, '{}'))
      and (n.challenge is null or n.nth_of_challenge = 1 and not intake.is_used(n.challenge))
    order by n.ordinal
  );
end
$$;

-- Promise: those requests whose user and address stay within the pool's limits, in their order: claims held plus earlier
-- requests of the batch count. Exact under lock_holders. Second call: the same. Locks: none.
create function intake.requests_within_limits(p_pool intake.pool_gates, p_requests intake.claim_request[])
returns intake.claim_request[]
language plpgsql stable set search_path = '' as $$
begin
  return array(
    select n.request
    from (
      select r as request, r.ordinal, r.user_id, r.verified, r.address,
        row_number() over (partition by r.user_id, r.verified order by r.ordinal) as nth,
        row_number() over (partition by r.address order by r.ordinal) as nth_of_address
      from unnest(p_requests) r
    ) n
    where (p_pool.max_per_user is null or n.nth <= p_pool.max_per_user and n.nth
        + intake.live_claims(p_pool.pool_id, n.user_id, n.verified, p_pool.max_per_user) <= p_pool.max_per_user)
      and (p_pool.max_per_address is null or n.address is null or n.nth_of_address <= p_pool.max_per_address and n.nth_of_address
        + intake.live_claims_of_address(p_pool.pool_id, n.address) <= p_pool.max_per_address)
    order by n.ordinal
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

-- Promise: claim, slot and message for each pair of request and slot (the arrays run side by side; requests left over are left
-- alone), and an answer to each. When the database refuses one of them (its request, its challenge or its slot is taken) it
-- writes nothing and answers none: the caller then asks one by one.
-- Second call with the same requests: no answer. Locks: claims in the order of their requests, so that two batches
-- with the same requests do not deadlock → slots → messages.
-- One statement: to begin each of four costs more than what they do for a batch of a few requests.
create function intake.take_slots(
  p_pool intake.pool_gates,
  p_requests intake.claim_request[],
  p_slot_ids uuid[],
  p_tids tid[]
)
returns intake.numbered_answer[]
language plpgsql set search_path = '' as $$
declare
  -- As for a single claim: ids begin with the time and the pool's digits, here once for all of them.
  v_begin text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
    || left(encode(sha256(convert_to(p_pool.pool_id, 'UTF8')), 'hex'), 3);
  v_answers intake.numbered_answer[];
begin
  with pair as materialized (
    select (v_begin || substr(gen_random_uuid()::text, 19))::uuid as claim_id,
      (p_pool.lane::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq') as msg_id, t.*
    from rows from (unnest(p_slot_ids), unnest(p_tids), unnest(p_requests)) as t (
      slot_id, tid,
      ordinal, user_id, request_id, request_key, verified, trusted, guest, secret_hash, address, challenge, difficulty, quantity,
      trace
    )
    where t.slot_id is not null
  ),
  claimed as (
    insert into public.claims (
      claim_id, pool_id, slot_id, user_id, request_id, request_key, verified, secret_hash, address, challenge,
      hold_until, msg_id
    )
    select p.claim_id, p_pool.pool_id, p.slot_id, p.user_id, p.request_id, p.request_key, p.verified, p.secret_hash,
      case when p_pool.max_per_address is not null then p.address end,
      case when p_pool.challenge_difficulty is not null then p.challenge end, p_pool.hold_until, p.msg_id
    from pair p
    order by p.request_key
  ),
  reserved as (
    update public.inventory_slots s
    set status = 'RESERVED', locked_by = p.user_id, locked_at = now()
    from pair p
    where s.ctid = p.tid
  ),
  sent as (
    insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
    select p.msg_id, clock_timestamp(), jsonb_build_object(
      'claim_id', p.claim_id, 'pool_id', p_pool.pool_id, 'resource_id', p.slot_id,
      'user_id', p.user_id, 'verified', p.verified, 'state', 'queued'
    ) || coalesce(p.trace, '{}')
    from pair p
  )
  select array_agg((
    p.ordinal, 'claimed', p.claim_id, p.slot_id, 'queued', now(), p_pool.hold_until, null
  )::intake.numbered_answer)
  into v_answers
  from pair p;
  return coalesce(v_answers, '{}');
exception
  when unique_violation then
    return '{}';
end
$$;

-- Promise: the answers that all requests of a closed, unknown, sold-out or busy pool get. Second call: the same.
-- Locks: none.
create function intake.refuse_all(p_pool intake.pool_gates, p_requests intake.claim_request[])
returns setof intake.numbered_answer
language plpgsql stable set search_path = '' as $$
begin
  return query
  select r.ordinal, intake.gate_for(p_pool, r), null::uuid, null::uuid, null::text, null::timestamptz, null::timestamptz,
    null::jsonb
  from unnest(p_requests) r;
end
$$;

-- Promise: an answer to each request, as the set-based twin of intake.claim_one for one pool. A pool whose cache is lost is
-- busy, unless p_rebuild allows to rebuild it here and its lock is free. Second call: as claim_one, request by request.
-- Locks: the pool, users and addresses (advisory, none waited for) → slots → claims → messages; sometimes the mark.
create function intake.claim_pool(p_pool_id text, p_requests intake.claim_request[], p_rebuild boolean)
returns setof intake.numbered_answer
language plpgsql set search_path = '' as $$
declare
  -- How far above the mark a batch may have to reach before it moves the mark.
  c_reach constant int := 1000;
  v_pool intake.pool_gates := intake.open_pool(p_pool_id, false, p_rebuild);
  v_busy int[];
  v_usual intake.claim_request[];
  v_slots record;
  v_answers intake.numbered_answer[] := '{}';
begin
  if v_pool.gate = 'busy' then
    return query select * from intake.refuse_all(v_pool, p_requests);
    return;
  end if;
  if coalesce(v_pool.max_per_user, v_pool.max_per_address, v_pool.challenge_difficulty) is not null then
    v_busy := array(select r.ordinal from unnest(p_requests) r where not intake.lock_holders(v_pool, r, false));
    if v_busy <> '{}' then
      return query
      select b, 'busy', null::uuid, null::uuid, null::text, null::timestamptz, null::timestamptz, null::jsonb
      from unnest(v_busy) b;
      p_requests := array(select r from unnest(p_requests) r where r.ordinal <> all (v_busy));
    end if;
  end if;
  v_usual := intake.usual_requests(p_requests);
  if v_pool.gate is not null then
    v_answers := array(select r from intake.refuse_all(v_pool, v_usual) r);
  else
    if v_pool.has_rules then
      v_usual := array(select r from unnest(v_usual) r where intake.gate_for(v_pool, r) is null);
      v_usual := intake.requests_within_limits(v_pool, v_usual);
    end if;
    v_slots := intake.pick_slots(p_pool_id, v_pool.low_order, cardinality(v_usual));
    if v_pool.is_paid then
      v_answers := intake.hold_slots(v_pool, v_usual, v_slots.slot_ids, v_slots.tids);
    else
      v_answers := intake.take_slots(v_pool, v_usual, v_slots.slot_ids, v_slots.tids);
    end if;
    if v_slots.last_order - v_pool.low_order >= c_reach then
      perform intake.advance_mark(p_pool_id);
    end if;
  end if;
  return query select * from unnest(v_answers);
  if cardinality(v_answers) < cardinality(p_requests) then
    return query
    select r.ordinal, a.*
    from (select u as request, u.ordinal from unnest(p_requests) u order by u.request_key, u.ordinal) r
    cross join lateral intake.claim_one(p_pool_id, r.request, false) a
    where r.ordinal not in (select d.ordinal from unnest(v_answers) d);
  end if;
end
$$;

-- Promise: an answer to each request, in any order; ordinal counts the requests from 1. Pools may be mixed.
-- outcome: those of intake.claim_answer; busy also where this user's or address's count or the rebuild of a lost pool is in the
-- hands of a transaction that has not ended: ask again.
-- p_verified says which user ids are proven; left out, the caller vouches for all, as it does in claim_resource_and_queue.
-- p_quantities says how many slots each request is for, all of them or none; null for one each.
-- p_proofs is null or a JSON array with what the caller of each request has shown, {secret_hash (hex), address, guest, challenge,
-- difficulty}; a request without one is the server's own word (intake.claim_request.trusted).
-- p_traceparents is null or the header traceparent of each request, for its message; one that is not valid is ignored.
-- Without p_rebuild a lost pool is busy too: a rebuild takes seconds, and the server lets no other pool wait for it.
-- Raises SL001 invalid, SL015 not read committed. Second call with the same requests: the same claims.
-- Locks: those of intake.claim_pool, pool by pool in the order of their names. It waits only for a transaction that has
-- claimed by the same request and has not ended: what that comes to is the answer.
-- Definer: service_role needs no rights to the queue.
create function public.claim_batch(
  p_pool_ids text[],
  p_user_ids text[],
  p_request_ids text[],
  p_verified boolean[] default null,
  p_rebuild boolean default true,
  p_proofs jsonb default null,
  p_quantities int[] default null,
  p_traceparents text[] default null
)
returns table (
  ordinal int, outcome text, claim_id uuid, resource_id uuid, state text,
  claimed_at timestamptz, hold_until timestamptz, group_claims jsonb
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
  perform public.answer_in_cell();
  if cardinality(p_pool_ids) is distinct from cardinality(p_user_ids)
     or cardinality(p_pool_ids) is distinct from cardinality(p_request_ids)
     or coalesce(cardinality(p_pool_ids), 0) <> cardinality(p_verified)
     or coalesce(cardinality(p_pool_ids), 0) <> jsonb_array_length(p_proofs)
     or coalesce(cardinality(p_pool_ids), 0) <> cardinality(p_quantities) or 1 > any (p_quantities)
     or coalesce(cardinality(p_pool_ids), 0) <> cardinality(p_traceparents) or cardinality(p_pool_ids) > c_max_requests then
    raise exception 'the arrays must have the same length, at most %, and quantities be positive', c_max_requests
      using errcode = 'SL001';
  end if;
  for v_pool in
    select t.pool_id,
      bool_or(
        t.pool_id is null or t.user_id is null or length(t.user_id) not between 1 and 200 or t.user_id ~ '[^ -~]|^ | $'
        or length(t.request_id) not between 1 and 200 or t.request_id ~ '[^ -~]|^ | $'
      ) as is_odd,
      array_agg((
        t.ordinal, t.user_id, t.request_id,
        case when t.request_id is not null then
          intake.request_key(t.pool_id, t.request_id, t.user_id, t.is_verified, t.secret_hash)
        end,
        t.is_verified, jsonb_typeof(t.proof) is distinct from 'object', coalesce((t.proof ->> 'guest')::boolean, false),
        t.secret_hash, t.proof ->> 'address', t.proof ->> 'challenge', (t.proof ->> 'difficulty')::int, nullif(t.quantity, 1),
        case when t.traceparent is not null then intake.trace_of(t.traceparent) end
      )::intake.claim_request order by t.ordinal) as requests
    from (
      select a.*, coalesce(a.verified, p_verified is null) as is_verified,
        decode(a.proof ->> 'secret_hash', 'hex') as secret_hash
      from rows from (
        unnest(p_pool_ids), unnest(p_user_ids), unnest(p_request_ids), unnest(p_verified), jsonb_array_elements(p_proofs),
        unnest(p_quantities), unnest(p_traceparents)
      ) with ordinality as a (pool_id, user_id, request_id, verified, proof, quantity, traceparent, ordinal)
    ) t
    group by t.pool_id
    order by t.pool_id
  loop
    if v_pool.is_odd then
      perform intake.check_ids(p_user_ids, p_request_ids);
    end if;
    if v_pool.pool_id is null then
      raise exception 'each request needs a pool' using errcode = 'SL001';
    end if;
    return query select * from intake.claim_pool(v_pool.pool_id, v_pool.requests, p_rebuild);
  end loop;
end
$$;
