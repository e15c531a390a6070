-- INTAKE, part 2: the claim, one buyer at a time; the queue's front; the metrics snapshot.
-- (Many buyers in one statement: 20260224100004_claim_batch.sql.)
-- Functions that run on every claim are plpgsql: before Postgres 18 an SQL-language function plans anew at every call.

-- Who asks for a slot, and what the caller has proven. trusted: a server of the owner asks, and has made its own checks.
-- guest: an anonymous sign-in. request_key: intake.request_key, if there is a request id. secret_hash, address, challenge and
-- difficulty (of the challenge that was solved) are null if the request has none. ordinal counts the requests of a batch
-- from 1. quantity: how many slots together, null for one. trace: intake.trace_of, null if the caller sent no traceparent.
create type intake.claim_request as (
  ordinal int,
  user_id text,
  request_id text,
  request_key uuid,
  verified boolean,
  trusted boolean,
  guest boolean,
  secret_hash bytea,
  address text,
  challenge text,
  difficulty int,
  quantity int,
  trace jsonb
);

-- What a claim request got: claimed, same (this request again), sold_out, limit, address_limit (the buyers of this address hold
-- as many slots as they may), closed, unknown_pool, auth_required, guests_refused (an anonymous sign-in is not enough),
-- challenge_required, challenge_used (its solution was good for another claim), server_required (the pool checks what only the
-- server knows), secret_required (what is paid for needs an owner who can be told from others: a verified user, or a secret),
-- quantity_refused (more slots than one request may claim), not_enough (fewer slots are free than were asked for), busy (the
-- last slots are being claimed by transactions that have not ended: ask again). group_claims: all claims of a request for
-- several slots, [{claim_id, resource_id, label}], the first of them first; else null.
create type intake.claim_answer as (
  outcome text,
  claim_id uuid,
  resource_id uuid,
  state text,
  claimed_at timestamptz,
  hold_until timestamptz,
  group_claims jsonb
);

-- Promise: what a message carries of the header traceparent of W3C Trace Context, {"traceparent": …}; null for a header that is
-- not valid, which the specification says to ignore. A header of a later version is cut to what version 00 has of it.
-- Callers ask only if there is a header. Second call: the same. Locks: none.
create function intake.trace_of(p_traceparent text) returns jsonb
language plpgsql immutable set search_path = '' as $$
begin
  if p_traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}($|-)'
     and (p_traceparent !~ '^00' or length(p_traceparent) = 55) then
    return jsonb_build_object('traceparent', '00' || substr(p_traceparent, 3, 53));
  end if;
  return null;
end
$$;

-- Promise: raises SL015. A transaction of another level than read committed looks at the database as it was when the
-- transaction began: it would declare a pool sold out whose slot came back since, and miss a user's newest claims.
-- A function that decides by what it reads checks the level first, in its own body: that costs at most 0.6 µs, and saves the
-- usual claim a call. Second call: raises again. Locks: none.
create function intake.refuse_isolation() returns void
language plpgsql set search_path = '' as $$
begin
  raise exception 'this transaction is %, and claims are only safe at read committed',
    current_setting('transaction_isolation')
    using errcode = 'SL015', hint = 'see default_transaction_isolation of the database, the role and the connection';
end
$$;

-- The rules and the mark of a pool in one look, and what stands in the way of every claim (closed, sold_out)
-- or null. A pool whose cache is lost, or that never had a slot, has no row here: ask intake.open_pool.
create view intake.pool_gates as
select
  m.pool_id,
  case
    when not c.is_active or now() < c.opens_at or now() >= c.closes_at then 'closed'
    when m.sold_out then 'sold_out'
  end as gate,
  c.max_per_user,
  now() + make_interval(secs => c.hold_sec) as hold_until,
  coalesce(c.require_auth, false) as require_auth,
  m.low_order,
  coalesce(c.lane, 0) as lane,
  c.allow_guests,
  c.max_per_address,
  c.challenge_difficulty,
  c.max_per_user is not null or c.require_auth or c.max_per_address is not null or c.challenge_difficulty is not null
    as has_rules,
  coalesce(c.confirm_by = 'payment', false) as is_paid,
  coalesce(c.max_quantity, 1) as max_quantity,
  -- What an order takes from the rules of a pool that is paid for. Columns, not one row: each look into a row costs a claim more.
  c.price,
  c.currency,
  c.payment_tenant,
  c.payment_livemode,
  c.expire_grace_sec
from intake.pool_marks m
left join public.engine_config c on c.pool_id = m.pool_id;

-- Promise: the pool's row of intake.pool_gates, after a rebuild if its cache was lost; a pool without slots is
-- sold_out (or closed) when it is configured and unknown_pool when it is not. Without p_wait a lost pool is busy while
-- another session has its lock, and without p_rebuild until another session has rebuilt it. Second call: the same.
-- Locks: none, or those of a rebuild.
create function intake.open_pool(p_pool_id text, p_wait boolean, p_rebuild boolean default true) returns intake.pool_gates
language plpgsql set search_path = '' as $$
declare
  v_pool intake.pool_gates;
begin
  select g.* into v_pool from intake.pool_gates g where g.pool_id = p_pool_id;
  if found then
    return v_pool;
  end if;
  if exists (select from intake.pool_totals t where t.pool_id = p_pool_id and t.slots > 0) then
    if p_wait or p_rebuild and pg_catalog.pg_try_advisory_xact_lock(intake.pool_lock_key(p_pool_id)) then
      perform intake.rebuild_inventory(p_pool_id);
    end if;
    -- Another session may have done it meanwhile.
    select g.* into v_pool from intake.pool_gates g where g.pool_id = p_pool_id;
    if not found then
      v_pool.pool_id := p_pool_id;
      v_pool.gate := 'busy';
    end if;
  else
    select case when not c.is_active or now() < c.opens_at or now() >= c.closes_at then 'closed' else 'sold_out' end
    into v_pool.gate
    from public.engine_config c where c.pool_id = p_pool_id;
    v_pool.pool_id := p_pool_id;
    v_pool.gate := coalesce(v_pool.gate, 'unknown_pool');
  end if;
  return v_pool;
end
$$;

-- Promise: raises SL001 with the reason where an id is not 1 to 200 characters in the Unicode form NFKC, holds a control
-- character or one that cannot be seen, or has a space at an end: two users would look like one. Second call: the same.
-- Locks: none. Callers look for characters outside ASCII and for spaces at an end first: nearly no id has one, and the look
-- costs less than a call.
create function intake.check_ids(p_user_ids text[], p_request_ids text[]) returns void
language plpgsql immutable set search_path = '' as $$
declare
  -- Control, format and default ignorable characters of Unicode, and its line separators; as in _shared/given_id.ts.
  c_unseen constant text := '[\u0001-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2'
    '\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb'
    '\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
  v_id record;
  v_wrong text;
begin
  for v_id in
    select 'the user id' as name, u as value from unnest(p_user_ids) u
    union all
    select 'the request id', r from unnest(p_request_ids) r where r is not null
  loop
    v_wrong := case
      when (length(v_id.value) between 1 and 200) is not true then 'must have 1 to 200 characters'
      when v_id.value ~ c_unseen then 'holds a control or zero-width character'
      when v_id.value ~ '^[ \u1680]|[ \u1680]$' then 'has a space at an end'
      when v_id.value is not nfkc normalized then 'is not in the Unicode form NFKC'
    end;
    if v_wrong is not null then
      raise exception '% %', v_id.name, v_wrong
        using errcode = 'SL001', hint = 'send the id exactly as it is meant: it is never changed on the way';
    end if;
  end loop;
end
$$;

-- Promise: the claim already made by the request with this key, as same; no outcome when there is none. Second call: the same. Locks: none.
create function intake.claim_of_request(p_request_key uuid) returns intake.claim_answer
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim public.claims;
begin
  select c.* into v_claim
  from public.claims c
  where c.request_key = p_request_key;
  if not found then
    return null;
  end if;
  if v_claim.order_id is not null then
    return intake.group_answer(v_claim.order_id);
  end if;
  return row(
    'same', v_claim.claim_id, v_claim.slot_id, v_claim.state, v_claim.claimed_at, v_claim.hold_until, null
  )::intake.claim_answer;
end
$$;

-- Promise: moves the mark up to the first slot that may still be free, so that claims do not walk over sold slots. It
-- reads without locks, and so still sees a slot whose claim is not committed: the mark never passes a slot that a
-- rollback could free. Second call: changes nothing. Locks: the mark, if free; else nothing.
create function intake.advance_mark(p_pool_id text) returns void
language plpgsql set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_low bigint;
  v_next bigint;
begin
  select m.low_order into v_low
  from intake.pool_marks m where m.pool_id = p_pool_id for update skip locked;
  if not found then
    return;
  end if;
  select s.sale_order into v_next
  from public.inventory_slots s
  where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= v_low
  order by s.sale_order
  limit 1;
  update intake.pool_marks m set low_order = v_next where m.pool_id = p_pool_id and v_next > v_low;
end
$$;

-- Promise: whether a slot is free, or held by a session that has not committed: this reads without locks and so sees
-- both. Second call: the same. Locks: none.
create function intake.maybe_free(p_pool_id text, p_low_order bigint) returns boolean
language plpgsql set search_path = '' as $$
begin
  perform from public.inventory_slots s
  where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
  order by s.sale_order limit 1;
  return found;
end
$$;

-- Promise: a free slot of the pool, locked; or none, after the pool was declared sold out. Never "sold out" while
-- another transaction may yet roll back or free a slot: p_wait waits for it and looks again, without it the answer is busy.
-- Second call: the same question anew.
-- Locks: the slot returned; the mark, when declaring. It never waits for a slot while it holds the mark, and a caller
-- that holds slots already passes p_wait = false: either wait would make deadlocks.
create function intake.any_slot(
  p_pool_id text,
  p_low_order bigint,
  p_wait boolean,
  out id uuid,
  out tid tid,
  out sale_order bigint,
  out busy boolean
)
language plpgsql set search_path = '' as $$
declare
  v_first uuid;
  v_mark intake.pool_marks;
begin
  loop
    select s.id, s.ctid, s.sale_order into id, tid, sale_order
    from public.inventory_slots s
    where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
    order by s.sale_order limit 1 for update skip locked;
    if found then
      return;
    end if;
    select s.id into v_first
    from public.inventory_slots s
    where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
    order by s.sale_order limit 1;
    busy := found and not p_wait;
    exit when busy;
    -- Wait until the session that has locked the slot, or the mark, ends; then look again. A row that was waited for stays
    -- locked even if it is of no use. The block gives it back: a session that waits for a slot must hold no slot and no mark.
    begin
      if v_first is not null then
        select s.id, s.ctid, s.sale_order into id, tid, sale_order
        from public.inventory_slots s
        where s.id = v_first and s.status = 'AVAILABLE' for update;
        if found then
          return;
        end if;
        raise exception using errcode = 'SL099';
      end if;
      if p_wait then
        select m.* into v_mark from intake.pool_marks m where m.pool_id = p_pool_id for update;
      else
        -- A batch never waits for another session: its other members have slots to claim.
        select m.* into v_mark from intake.pool_marks m where m.pool_id = p_pool_id for update skip locked;
      end if;
      if v_mark.sold_out is not true then
        -- No mark: the cache was emptied a moment ago. A slot: it was freed a moment ago.
        busy := v_mark.pool_id is null or intake.maybe_free(p_pool_id, v_mark.low_order);
        if busy and p_wait and v_mark.pool_id is not null then
          raise exception using errcode = 'SL099';
        end if;
        update intake.pool_marks m set sold_out = true where m.pool_id = p_pool_id and not busy;
      end if;
      return;
    exception
      when sqlstate 'SL099' then
        p_low_order := least(p_low_order, v_mark.low_order);
    end;
  end loop;
end
$$;

-- Promise: the key of the advisory lock under which the claims of one holder in one pool are counted: of a user
-- (p_kind verified or unverified), of a network address (address) or of a challenge. Second call: same value. Locks: none.
create function intake.holder_lock_key(p_pool_id text, p_kind text, p_name text) returns bigint
language sql immutable parallel safe set search_path = '' as $$
  select pg_catalog.hashtextextended(p_name, pg_catalog.hashtextextended('sluice ' || p_kind || ' ' || p_pool_id, 0));
$$;

-- Promise: the answer for a claim that the database refused: another call of the same request was first (same), or the
-- challenge was used for another claim (challenge_used), or no outcome: then the cache offered a slot that a claim holds,
-- because a person set its status by hand, and this function has corrected it. Second call: the same. Locks: the slot.
create function intake.lost_race(p_request intake.claim_request, p_slot_id uuid)
returns intake.claim_answer
language plpgsql set search_path = '' as $$
declare
  v_answer intake.claim_answer := intake.claim_of_request(p_request.request_key);
begin
  if v_answer.outcome is not null then
    return v_answer;
  elsif intake.is_used(p_request.challenge) then
    v_answer.outcome := 'challenge_used';
    return v_answer;
  end if;
  update public.inventory_slots s
  set status = case when c.state = 'committed' then 'CONSUMED' else 'RESERVED' end::public.slot_status,
    locked_by = c.user_id,
    locked_at = c.claimed_at
  from public.claims c
  where s.id = p_slot_id and c.slot_id = p_slot_id and c.freed_at is null and s.status = 'AVAILABLE';
  return v_answer;
end
$$;

-- Promise: how many slots of the pool the user holds, tickets included, counted up to p_at_most. Exact under the lock of
-- holder_lock_key. Second call: the same. Locks: none.
create function intake.live_claims(p_pool_id text, p_user_id text, p_verified boolean, p_at_most int) returns bigint
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
begin
  return (
    select count(*)
    from (
      select from public.claims c
      where c.user_id = p_user_id and c.pool_id = p_pool_id and c.verified = p_verified and c.freed_at is null
      limit p_at_most
    ) held
  );
end
$$;

-- Promise: the same for the buyers of one network address, which hold no more than the pool allows: all are counted.
-- Second call: the same. Locks: none.
create function intake.live_claims_of_address(p_pool_id text, p_address text) returns bigint
language plpgsql stable set search_path = '' set enable_seqscan = off as $$
begin
  return (
    select count(*) from public.claims c where c.pool_id = p_pool_id and c.address = p_address and c.freed_at is null
  );
end
$$;

-- Promise: whether a claim was made with this challenge. Second call: the same. Locks: none.
create function intake.is_used(p_challenge text) returns boolean
language plpgsql stable set search_path = '' set enable_seqscan = off as $$
begin
  return p_challenge is not null and exists (select from public.claims c where c.challenge = p_challenge);
end
$$;

-- Promise: why this request is refused however many slots are free: first what its caller lacks, then the pool's gate; null if
-- it is not. Second call: the same. Locks: none.
create function intake.gate_for(p_pool intake.pool_gates, p_request intake.claim_request) returns text
language plpgsql immutable set search_path = '' as $$
begin
  return case
    when p_pool.require_auth and not p_request.verified then 'auth_required'
    when p_pool.require_auth and p_request.guest and not p_pool.allow_guests then 'guests_refused'
    when p_pool.is_paid and not p_request.verified and p_request.secret_hash is null then 'secret_required'
    when p_request.trusted then p_pool.gate
    -- A claim through PostgREST carries neither an address nor a challenge.
    when p_request.address is null and coalesce(p_pool.max_per_address, p_pool.challenge_difficulty) is not null
      then 'server_required'
    when p_pool.challenge_difficulty > coalesce(p_request.difficulty, 0) then 'challenge_required'
    else p_pool.gate
  end;
end
$$;

-- Promise: true, with the locks under which the claims of this request's user and address are counted, if the pool limits
-- them, and the lock of its challenge. Without p_wait: false if another session has one of them. Second call: has them already.
-- Locks: user → address → challenge (advisory).
create function intake.lock_holders(p_pool intake.pool_gates, p_request intake.claim_request, p_wait boolean) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_keys bigint[] := '{}';
  v_key bigint;
begin
  if p_pool.max_per_user is not null then
    v_keys := v_keys || intake.holder_lock_key(
      p_pool.pool_id, case when p_request.verified then 'verified' else 'unverified' end, p_request.user_id
    );
  end if;
  if p_pool.max_per_address is not null and p_request.address is not null then
    v_keys := v_keys || intake.holder_lock_key(p_pool.pool_id, 'address', p_request.address);
  end if;
  -- Two batches with the same challenges in another order would wait for each other in the unique index.
  if p_pool.challenge_difficulty is not null and p_request.challenge is not null then
    v_keys := v_keys || intake.holder_lock_key(p_pool.pool_id, 'challenge', p_request.challenge);
  end if;
  foreach v_key in array v_keys loop
    if p_wait then
      perform pg_catalog.pg_advisory_xact_lock(v_key);
    elsif not pg_catalog.pg_try_advisory_xact_lock(v_key) then
      return false;
    end if;
  end loop;
  return true;
end
$$;

-- Promise: why this request gets no slot now, or the claim it has already; no outcome when nothing stands in the
-- way. Without p_wait a user or an address whose claims another session is counting is busy. Second call: the same.
-- Locks: those of lock_holders.
create function intake.refusal(p_pool intake.pool_gates, p_request intake.claim_request, p_wait boolean)
returns intake.claim_answer
language plpgsql set search_path = '' as $$
declare
  v_answer intake.claim_answer;
begin
  if p_pool.has_rules and not intake.lock_holders(p_pool, p_request, p_wait) then
    v_answer.outcome := 'busy';
    return v_answer;
  end if;
  if p_request.request_id is not null then
    v_answer := intake.claim_of_request(p_request.request_key);
    if v_answer.outcome is not null then
      return v_answer;
    end if;
  end if;
  v_answer.outcome := intake.gate_for(p_pool, p_request);
  if v_answer.outcome is not null then
    return v_answer;
  end if;
  v_answer.outcome := case
    when p_pool.max_per_user is not null and intake.live_claims(
      p_pool.pool_id, p_request.user_id, p_request.verified, p_pool.max_per_user
    ) + coalesce(p_request.quantity, 1) > p_pool.max_per_user then 'limit'
    when p_pool.max_per_address is not null and p_request.address is not null and intake.live_claims_of_address(
      p_pool.pool_id, p_request.address
    ) + coalesce(p_request.quantity, 1) > p_pool.max_per_address then 'address_limit'
    when p_pool.challenge_difficulty is not null and intake.is_used(p_request.challenge) then 'challenge_used'
  end;
  return v_answer;
end
$$;

-- Promise: one slot for one buyer: claim, slot and message in this transaction, or the reason why not.
-- Second call of the same request: the same claim (same), also when both run at once.
-- Raises SL015 at another isolation level than read committed.
-- Several slots at once, and a slot that is to be paid for, are intake.claim_group's.
-- Locks: those of intake.refusal → slot → claim → message; sometimes the mark. Without p_wait it waits for no lock
-- that another claim may hold: a caller that has claimed in this transaction already, or will again, passes false.
-- The steps that every claim needs are in this body and not in functions of their own: each call of a function
-- with settings costs a transaction of one claim about 10 µs.
create function intake.claim_one(p_pool_id text, p_request intake.claim_request, p_wait boolean)
returns intake.claim_answer
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_pool intake.pool_gates;
  v_stripe int := floor(random() * 64);
  v_slot record;
  v_answer intake.claim_answer;
  v_msg_id bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  select g.* into v_pool from intake.pool_gates g where g.pool_id = p_pool_id;
  if not found then
    v_pool := intake.open_pool(p_pool_id, p_wait);
  end if;
  if p_request.request_id is not null or v_pool.gate is not null or v_pool.has_rules then
    v_answer := intake.refusal(v_pool, p_request, p_wait);
  end if;
  if (v_pool.is_paid or p_request.quantity is not null) and v_answer.outcome is null then
    return intake.claim_group(v_pool, p_request, p_wait);
  end if;
  while v_answer.outcome is null loop
    select s.id, s.ctid as tid, s.sale_order, false as busy into v_slot
    from public.inventory_slots s
    where s.pool_id = p_pool_id and s.sale_order / 16 % 64 = v_stripe and s.status = 'AVAILABLE'
      and s.sale_order >= v_pool.low_order
    order by s.sale_order limit 1 for update skip locked;
    if not found then
      v_slot := intake.any_slot(p_pool_id, v_pool.low_order, p_wait);
      if v_slot.id is null then
        -- The last slot may have gone to this very request, while this call waited for it.
        v_answer := intake.claim_of_request(p_request.request_key);
        v_answer.outcome := coalesce(v_answer.outcome, case when v_slot.busy then 'busy' else 'sold_out' end);
        exit;
      end if;
    end if;
    v_msg_id := (v_pool.lane::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq');
    insert into public.claims as c (
      claim_id, pool_id, slot_id, user_id, request_id, request_key, verified, secret_hash, address, challenge, hold_until, msg_id
    )
    values (
      (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
        || left(encode(sha256(convert_to(p_pool_id, 'UTF8')), 'hex'), 3) || substr(gen_random_uuid()::text, 19))::uuid,
      p_pool_id, v_slot.id, p_request.user_id, p_request.request_id, p_request.request_key, p_request.verified,
      p_request.secret_hash, case when v_pool.max_per_address is not null then p_request.address end,
      case when v_pool.challenge_difficulty is not null then p_request.challenge end, v_pool.hold_until, v_msg_id
    )
    on conflict do nothing returning c.claim_id into v_answer.claim_id;
    if not found then
      v_answer := intake.lost_race(p_request, v_slot.id);
      continue;
    end if;
    update public.inventory_slots s set status = 'RESERVED', locked_by = p_request.user_id, locked_at = now()
    where s.ctid = v_slot.tid;
    insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
    values (v_msg_id, clock_timestamp(), jsonb_build_object(
      'claim_id', v_answer.claim_id, 'pool_id', p_pool_id, 'resource_id', v_slot.id,
      'user_id', p_request.user_id, 'verified', p_request.verified, 'state', 'queued') || coalesce(p_request.trace, '{}'));
    -- The stripes are about equally far: one claim in 64 looks whether the mark can follow.
    if v_stripe = 0 and v_slot.sale_order - v_pool.low_order > 1024 then
      perform intake.advance_mark(p_pool_id);
    end if;
    return row('claimed', v_answer.claim_id, v_slot.id, 'queued', now(), v_pool.hold_until, null)::intake.claim_answer;
  end loop;
  return v_answer;
end
$$;

-- Promise: whether the caller has proven to be p_user_id. Roles that are neither anon nor authenticated are
-- servers and vouch for their users. A signed-in user may act only for itself: raises SL006.
-- Second call: the same. Locks: none.
-- The role setting, not current_user: inside a definer function current_user is the owner.
create function intake.caller_is(p_user_id text) returns boolean
language plpgsql stable set search_path = '' as $$
begin
  case current_setting('role')
    when 'anon' then
      return false;
    when 'authenticated' then
      if (p_user_id = auth.jwt() ->> 'sub') is not true then
        raise exception 'a signed-in user may claim only for itself'
          using errcode = 'SL006', hint = 'p_user_id must be the sub of the token';
      end if;
      return true;
    else
      return true;
  end case;
end
$$;

-- Promise: raises the error that belongs to an outcome. Second call: raises again. Locks: none.
create function intake.raise_outcome(p_outcome text, p_pool_id text) returns void
language plpgsql set search_path = '' as $$
begin
  case p_outcome
    when 'unknown_pool' then
      raise exception 'no pool %', p_pool_id
        using errcode = 'SL002', hint = 'a pool exists once it has a row in engine_config or slots';
    when 'closed' then
      raise exception 'pool % is closed', p_pool_id
        using errcode = 'SL003', hint = 'see is_active, opens_at and closes_at of the pool';
    when 'limit' then
      raise exception 'this user holds as many slots of pool % as one user may', p_pool_id
        using errcode = 'SL004', hint = 'release a claim first';
    when 'auth_required' then
      raise exception 'pool % takes claims of signed-in users only', p_pool_id using errcode = 'SL005';
    when 'guests_refused' then
      raise exception 'pool % takes no claims of anonymous sign-ins', p_pool_id using errcode = 'SL016';
    when 'secret_required' then
      raise exception 'pool % is paid for, and needs a signed-in user or a secret', p_pool_id
        using errcode = 'SL043', hint = 'sign in, or claim through POST /v1/pools/<pool>/claims with a secret';
    when 'server_required' then
      raise exception 'pool % takes claims through its server only: it limits addresses or asks for a challenge', p_pool_id
        using errcode = 'SL017', hint = 'POST /v1/pools/<pool>/claims';
    else
      raise exception 'pool % is busy', p_pool_id using errcode = 'SL011', hint = 'ask again';
  end case;
end
$$;

-- Promise: a slot of the pool for this user, durable and on the queue when the transaction commits; null when
-- the pool is sold out. Raises SL001 invalid, SL002 unknown pool, SL003 closed, SL004 limit, SL005 sign in
-- first, SL006 not your user id, SL012 the claim of this request id has ended, SL015 not read committed, SL016 an anonymous
-- sign-in is not enough, SL017 the pool sells through its server only, SL043 a pool that is paid for needs a signed-in user.
-- In such a pool the slot is held, and on the queue once it was paid for (20260224100017_orders.sql).
-- A traceparent among the headers that PostgREST tells of goes with the message.
-- Second call of the same user with the same p_request_id: the same slot. Locks: those of intake.claim_one.
-- Definer: anon and authenticated may claim, and may touch nothing else.
create function public.claim_resource_and_queue(p_pool_id text, p_user_id text, p_request_id text default null)
returns uuid
language plpgsql security definer set search_path = '' as $$
declare
  v_role constant text := current_setting('role');
  v_headers constant text := current_setting('request.headers', true);
  v_request intake.claim_request;
  v_answer intake.claim_answer;
begin
  perform public.answer_in_cell();
  if p_pool_id is null or p_user_id is null then
    raise exception 'p_pool_id and p_user_id are required' using errcode = 'SL001';
  elsif p_user_id ~ '[^ -~]|^ | $' or p_request_id ~ '[^ -~]|^ | $' or length(p_user_id) not between 1 and 200
     or length(p_request_id) not between 1 and 200 then
    perform intake.check_ids(array[p_user_id], array[p_request_id]);
  end if;
  v_request.user_id := p_user_id;
  v_request.request_id := p_request_id;
  v_request.verified := intake.caller_is(p_user_id);
  if p_request_id is not null then
    v_request.request_key := intake.request_key(p_pool_id, p_request_id, p_user_id, v_request.verified, null);
  end if;
  v_request.trusted := v_role not in ('anon', 'authenticated');
  v_request.guest := v_role = 'authenticated' and coalesce((auth.jwt() ->> 'is_anonymous')::boolean, false);
  if v_headers like '%"traceparent"%' then
    v_request.trace := intake.trace_of(v_headers::jsonb ->> 'traceparent');
  end if;
  v_answer := intake.claim_one(p_pool_id, v_request, true);
  if v_answer.state in ('released', 'expired', 'refused', 'discarded', 'voided') then
    raise exception 'the claim of this request id has ended: %', v_answer.state
      using errcode = 'SL012', hint = 'its slot may be another user''s now; make a fresh request id';
  elsif v_answer.outcome in ('claimed', 'same') then
    return v_answer.resource_id;
  elsif v_answer.outcome = 'sold_out' then
    return null;
  end if;
  perform intake.raise_outcome(v_answer.outcome, p_pool_id);
  return null;
end
$$;

-- Promise: up to p_batch_size messages, hidden from other readers for p_visibility_timeout seconds. In the order of their
-- ids, and so lane by lane: first in, first out within a pool, but one pool's messages before another's. A reader that must
-- be fair to all pools takes by lane, as the bridge does (public.bridge_take).
-- Second call: other messages, until the timeout has passed. Locks: the rows read, until commit.
-- Definer, as are the three after it: pgmq's schema is closed to the API roles.
create function public.intake_queue_read(p_visibility_timeout int, p_batch_size int)
returns table (msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb)
language sql security definer set search_path = '' as $$
  select r.msg_id, r.read_ct, r.enqueued_at, r.vt, r.message
  from pgmq.read('intake_queue', p_visibility_timeout, p_batch_size) r;
$$;

-- Promise: removes the messages and returns the ids that were there. It does not check who holds them; workers use the
-- fenced form of the bridge. An old caller has set the slot CONSUMED before: then the claim is committed, and a message
-- put there by hand gets a committed claim, so that a rebuild knows the slot is sold.
-- Second call: returns nothing. Locks: the rows deleted, then their claims.
create function public.intake_queue_delete(p_msg_ids bigint[]) returns setof bigint
language plpgsql security definer set search_path = '' as $$
begin
  return query
  with deleted as (
    delete from pgmq.q_intake_queue q where q.msg_id = any (p_msg_ids) returning q.msg_id, q.message
  ),
  carried as (
    update public.claims c
    set state = 'committed', msg_id = null, hold_until = null, end_as = null
    from deleted d
    join public.inventory_slots s
      on s.id = intake.uuid_or_null(d.message ->> 'resource_id') and s.status = 'CONSUMED'
    where c.claim_id = intake.uuid_or_null(d.message ->> 'claim_id') and c.slot_id = s.id
      and c.state in ('queued', 'validated')
  ),
  by_hand as (
    insert into public.claims (claim_id, pool_id, slot_id, user_id, state, verified)
    select coalesce(intake.uuid_or_null(d.message ->> 'claim_id'), s.id), s.pool_id, s.id, d.message ->> 'user_id',
      'committed', intake.is_verified(d.message)
    from deleted d
    join public.inventory_slots s
      on s.id = intake.uuid_or_null(d.message ->> 'resource_id') and s.status = 'CONSUMED'
    where length(d.message ->> 'user_id') between 1 and 200
    on conflict do nothing
  )
  select d.msg_id from deleted d;
end
$$;

-- Promise: the lane of the pool's messages; 0 where it has no row of engine_config. Second call: the same. Locks: none.
create function intake.lane_of(p_pool_id text) returns int
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
begin
  return coalesce((select c.lane from public.engine_config c where c.pool_id = p_pool_id), 0);
end
$$;

-- Promise: puts a message on the queue, in the lane of its pool, and returns its id. Second call: a second message.
-- Locks: none.
create function public.intake_queue_send(p_payload jsonb) returns bigint
language sql security definer set search_path = '' as $$
  insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
  values (
    (intake.lane_of(p_payload ->> 'pool_id')::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq'),
    clock_timestamp(), p_payload
  )
  returning msg_id;
$$;

-- Promise: the text as a uuid, or null if it is not one: any client may have written the message. Second call: the same.
-- Locks: none.
create function intake.uuid_or_null(p_text text) returns uuid
language sql immutable parallel safe set search_path = '' as $$
  select case
    when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid
  end;
$$;

-- Promise: whether the message is of a proven user; one without the field is (it was put there by a server). Second call: the
-- same. Locks: none.
create function intake.is_verified(p_message jsonb) returns boolean
language sql immutable parallel safe set search_path = '' as $$
  select p_message -> 'verified' is distinct from 'false'::jsonb;
$$;

-- Promise: a payload as an object: itself, or wrapped as {"payload": …} if it is not an object, so that reasons and
-- ids can be added to it. Second call: unchanged. Locks: none.
create function intake.object_of(p_payload jsonb) returns jsonb
language sql immutable parallel safe set search_path = '' as $$
  select case
    when jsonb_typeof(p_payload) = 'object' then p_payload
    else jsonb_build_object('payload', p_payload)
  end;
$$;

-- Promise: the message leaves the queue and its payload, with original_msg_id, final_read_ct and
-- routed_to_dlq_at, stands in the dead letters; its claim, if it has one, waits as dead_letter. A message that counted as
-- validated still does. The user is the one in the queue's row, so that a user who was erased meanwhile stays erased.
-- Returns the dead letter's id. Null, and nothing changes, if another session has read the message since p_read_ct.
-- Second call for the same message: null, nothing changes. Locks: the message, then the claim.
create function public.intake_route_to_dlq(p_msg_id bigint, p_payload jsonb, p_read_ct int) returns bigint
language plpgsql security definer set search_path = '' as $$
declare
  v_message jsonb;
  v_dlq_id bigint;
begin
  delete from pgmq.q_intake_queue q
  where q.msg_id = p_msg_id and (q.read_ct > p_read_ct) is not true
  returning q.message into v_message;
  if not found then
    return null;
  end if;
  v_dlq_id := pgmq.send('intake_dlq', intake.object_of(p_payload) || jsonb_build_object(
    'original_msg_id', p_msg_id, 'final_read_ct', p_read_ct, 'routed_to_dlq_at', now()
  ) || case when v_message ->> 'state' = 'validated' then '{"state": "validated"}'::jsonb else '{}' end
    || case when v_message ? 'user_id' then jsonb_build_object('user_id', v_message -> 'user_id') else '{}' end);
  update public.claims c
  set state = 'dead_letter', msg_id = v_dlq_id
  where c.claim_id = intake.uuid_or_null(v_message ->> 'claim_id') and coalesce(c.msg_id, p_msg_id) = p_msg_id
    and c.state in ('queued', 'validated');
  return v_dlq_id;
end
$$;

-- Promise: one engine_metrics row for each active pool. A pool that has lost its cache gets no row until it is rebuilt: no
-- number rather than a wrong one. Queue depths are those of the whole queue. Second call: another set of rows. Locks: none.
-- Definer: cron and service_role need no rights to the cache.
create function public.snapshot_engine_metrics() returns void
language plpgsql security definer set search_path = '' as $$
begin
  insert into public.engine_metrics (
    pool_id, available_slots, reserved_slots, consumed_slots, queue_depth, dlq_depth
  )
  select
    c.pool_id,
    count(s.id) filter (where s.status = 'AVAILABLE'),
    count(s.id) filter (where s.status = 'RESERVED'),
    count(s.id) filter (where s.status = 'CONSUMED'),
    (select count(*) from pgmq.q_intake_queue),
    (select count(*) from pgmq.q_intake_dlq)
  from public.engine_config c
  left join public.inventory_slots s on s.pool_id = c.pool_id
  where c.is_active and not exists (
    select from intake.pool_totals t
    where t.pool_id = c.pool_id and t.slots > 0
      and not exists (select from intake.pool_marks m where m.pool_id = t.pool_id)
  )
  group by c.pool_id;
end
$$;
