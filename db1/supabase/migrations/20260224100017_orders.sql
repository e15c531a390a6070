-- ORDERS: claims that belong together, and claims that are paid for. A request for several slots gets all of them or none; their
-- claims have one order_id, which is the id of the first. In a pool with confirm_by payment each request, also one for a single
-- slot, has a row of orders beside its claims: they are held until a payment buys them or the hold is over.
--
-- What a payment is for is decided here, once, in order_payments. The ledger (DB2) alone knows that money moved; it asks
-- settle_payments and settle_payment, keeps the answer, and sends back what could not buy. A session of the payment provider is
-- asked for only when its row of checkouts is committed, and is closed before the slots are on sale again, or the grace has run
-- out.
-- An order that was paid for ends by a void alone: first the tombstone in the ledger, then finish_void here.
--
-- The order's row is the mutex: claim, checkout, closing, expiry, settlement and void of one order follow one another. The order
-- of locks stands at the top of 20260224100003_inventory.sql.

-- What an order is for and what it costs was fixed when it was claimed. hold_until is null when it was paid, and while a session
-- that was paid waits for its decision ("paying"). ended_at: its held claims have ended; a late payment may still buy others.
create table public.orders (
  order_id uuid primary key,
  pool_id text not null,
  -- A text: the claim has the same user, and checks it.
  user_id text not null,
  verified boolean not null,
  seats int not null,
  unit_price bigint not null,
  currency text not null,
  tenant text not null,
  livemode boolean not null,
  hold_until timestamptz,
  -- How long the hold waits for the provider to close the payment.
  grace_until timestamptz not null,
  end_as public.claim_state not null default 'expired',
  ended_at timestamptz,
  -- The one payment that bought it: tenant/payment.
  payment_key text,
  -- What its messages carry of the caller's traceparent (intake.trace_of): they are written when it is paid. Null: nothing.
  trace jsonb
);

-- By pool first, as claims_on_hold.
create index orders_on_hold on public.orders (pool_id, hold_until) where hold_until is not null and ended_at is null;

-- What was decided about each payment, for ever. order_id is null where the payment named none.
create table public.order_payments (
  payment_key text primary key,
  order_id uuid,
  amount bigint,
  currency text,
  decision text not null,
  reason text not null,
  -- It was paid through a session of ours.
  is_own boolean not null,
  decided_at timestamptz not null default now(),
  constraint decision_is_known check (decision in ('funds', 'refund', 'void'))
);

-- The primary key lets a payment buy once, and this index lets an order be bought once. An index on orders (payment_key) would
-- cost each claim that is held.
create unique index one_payment_per_order on public.order_payments (order_id) where decision = 'funds';
create index order_payments_by_order on public.order_payments (order_id);

-- The sessions that the provider was asked for. params are its own, and never change: the same key with other parameters would be
-- refused. next_attempt_at is when the closer looks at it: at the end of the hold, or when the order is paid or released; infinity
-- when there is nothing left to do.
create table public.checkouts (
  order_id uuid not null,
  n int not null,
  idempotency_key text not null,
  tenant text not null,
  livemode boolean not null,
  params jsonb not null,
  session_id text,
  url text,
  payment_intent text,
  state text not null default 'creating',
  lease_token uuid,
  next_attempt_at timestamptz not null,
  attempts int not null default 0,
  created_at timestamptz not null default now(),
  -- Since when it is complete.
  completed_at timestamptz,
  primary key (order_id, n),
  constraint checkout_state_is_known check (state in ('creating', 'open', 'processing', 'complete', 'expired')),
  constraint one_checkout_per_session unique (session_id)
);

create unique index one_live_checkout on public.checkouts (order_id) where state in ('creating', 'open');
create index checkouts_due on public.checkouts (next_attempt_at) where next_attempt_at < 'infinity';
-- For take_closing: a backlog of one kind costs a look for the other nothing.
create index checkouts_to_take on public.checkouts ((session_id is null), next_attempt_at) where next_attempt_at < 'infinity';
-- For those who watch: what the closer has tried and could not end. No running hold is among them.
create index checkouts_tried on public.checkouts (next_attempt_at) where attempts > 1 and next_attempt_at < 'infinity';

-- Promise: how an order stands: held, paying (a session was paid, and its decision is on the way), paid, expired, released, voided
-- (all of its tickets), or refund_due (it has ended, and its payment could not buy). Second call: the same. Locks: none.
create function intake.order_status(p_order public.orders) returns text
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
begin
  return case
    when p_order.payment_key is not null then case
      when exists (
        select from public.claims c
        where c.claim_id = any (intake.claims_of_orders(array[p_order.order_id])) and c.paid and c.freed_at is null
      ) then 'paid'
      else 'voided'
    end
    when p_order.ended_at is null then case when p_order.hold_until is null then 'paying' else 'held' end
    when exists (
      select from public.order_payments p where p.order_id = p_order.order_id and p.decision = 'refund'
    ) then 'refund_due'
    else p_order.end_as::text
  end;
end
$$;

-- Promise: the claims of an order as they stand, [{claim_id, resource_id, state, label}], the first of them first: those that
-- a late payment bought, where it did, else those of the request. Second call: the same. Locks: none.
create function intake.order_claims(p_order_id uuid) returns jsonb
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := intake.claims_of_orders(array[p_order_id]);
begin
  return (
    select jsonb_agg(jsonb_build_object(
      'claim_id', c.claim_id, 'resource_id', c.slot_id, 'state', c.state, 'label', m.label
    ) order by c.claim_id <> p_order_id, c.claim_id)
    from public.claims c
    left join public.slot_manifest m on m.slot_id = c.slot_id
    where c.claim_id = any (v_claim_ids) and c.order_id = p_order_id and (c.replaces is not null or not exists (
      select from public.claims r where r.claim_id = any (v_claim_ids) and r.replaces is not null
    ))
  );
end
$$;

-- Promise: the order as its buyer sees it: {order_id, status, amount, currency, unit_price, seats, hold_until, claims}. A group of a
-- pool without payment has no status, price and hold of its own. Null if the order does not exist. Second call: the same.
-- Locks: none.
create function intake.order_view(p_order_id uuid) returns jsonb
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_order public.orders;
  v_claims jsonb := intake.order_claims(p_order_id);
begin
  select o.* into v_order from public.orders o where o.order_id = p_order_id;
  return case when v_claims is not null then jsonb_build_object(
    'order_id', p_order_id, 'status', case when v_order.order_id is not null then intake.order_status(v_order) end,
    'amount', v_order.seats * v_order.unit_price, 'currency', v_order.currency, 'unit_price', v_order.unit_price,
    'seats', coalesce(v_order.seats, jsonb_array_length(v_claims)), 'hold_until', v_order.hold_until, 'claims', v_claims
  ) end;
end
$$;

-- Promise: the answer to the request that made this order: same, with the claims that it made. Second call: the same. Locks: none.
create function intake.group_answer(p_order_id uuid) returns intake.claim_answer
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_answer intake.claim_answer;
begin
  select 'same', c.claim_id, c.slot_id, c.state::text, c.claimed_at,
    coalesce(c.hold_until, (select o.hold_until from public.orders o where o.order_id = p_order_id)),
    (
      select case when count(*) > 1 then jsonb_agg(jsonb_build_object(
        'claim_id', g.claim_id, 'resource_id', g.slot_id, 'label', m.label
      ) order by g.claim_id <> p_order_id, g.claim_id) end
      from public.claims g
      left join public.slot_manifest m on m.slot_id = g.slot_id
      where g.claim_id = any (intake.claims_of_orders(array[p_order_id])) and g.replaces is null
    )
  into v_answer
  from public.claims c
  where c.claim_id = p_order_id;
  return v_answer;
end
$$;

-- Promise: a claim for each of the slots, which the caller has locked, all of one order, and the slots RESERVED; returns the claims in the
-- order of the slots. Held, with the order's row, where the pool is paid for and this is a new order; else queued, with their
-- messages. p_order_id and p_replaces: a late payment has bought them, for the claims that had ended. The request's id and
-- challenge are the first claim's. Raises unique_violation where the request, the challenge or a slot is taken.
-- Second call: unique_violation. Locks: claims → slots → messages.
create function intake.write_group(
  p_pool intake.pool_gates,
  p_request intake.claim_request,
  p_slot_ids uuid[],
  p_tids tid[],
  p_order_id uuid default null,
  p_replaces uuid[] default null
)
returns uuid[]
language plpgsql set search_path = '' as $$
declare
  v_begin text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
    || left(encode(sha256(convert_to(p_pool.pool_id, 'UTF8')), 'hex'), 3);
  v_ids uuid[] := array(select (v_begin || substr(gen_random_uuid()::text, 19))::uuid from unnest(p_slot_ids));
  v_is_late boolean := p_order_id is not null;
  v_order_id uuid := coalesce(p_order_id, v_ids[1]);
  v_is_held boolean := p_pool.is_paid and not v_is_late;
begin
  with seat as materialized (
    select t.*, case when not v_is_held then (p_pool.lane::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq') end as msg_id,
      t.nth = 1 and not v_is_late as is_first
    from unnest(v_ids, p_slot_ids, p_tids, p_replaces) with ordinality t (claim_id, slot_id, tid, replaces, nth)
  ),
  claimed as (
    insert into public.claims (
      claim_id, pool_id, slot_id, user_id, request_id, request_key, state, verified, secret_hash, address, challenge,
      hold_until, msg_id, order_id, replaces, paid
    )
    select s.claim_id, p_pool.pool_id, s.slot_id, p_request.user_id, case when s.is_first then p_request.request_id end,
      case when s.is_first then p_request.request_key end,
      case when v_is_held then 'held' else 'queued' end::public.claim_state, p_request.verified, p_request.secret_hash,
      case when p_pool.max_per_address is not null then p_request.address end,
      case when s.is_first and p_pool.challenge_difficulty is not null then p_request.challenge end,
      case when not p_pool.is_paid and not v_is_late then p_pool.hold_until end, s.msg_id, v_order_id, s.replaces,
      case when v_is_late then true end
    from seat s
  ),
  reserved as (
    update public.inventory_slots i
    set status = 'RESERVED', locked_by = p_request.user_id, locked_at = now()
    from seat s
    where i.ctid = s.tid
  ),
  queued as (
    insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
    select s.msg_id, clock_timestamp(), jsonb_build_object(
      'claim_id', s.claim_id, 'pool_id', p_pool.pool_id, 'resource_id', s.slot_id, 'user_id', p_request.user_id,
      'verified', p_request.verified, 'order_id', v_order_id, 'state', 'queued'
    ) || coalesce(p_request.trace, '{}')
    from seat s
    where s.msg_id is not null
  )
  insert into public.orders (
    order_id, pool_id, user_id, verified, seats, unit_price, currency, tenant, livemode, hold_until, grace_until, trace
  )
  select v_order_id, p_pool.pool_id, p_request.user_id, p_request.verified, cardinality(v_ids), p_pool.price,
    p_pool.currency, p_pool.payment_tenant, p_pool.payment_livemode, p_pool.hold_until,
    p_pool.hold_until + make_interval(secs => p_pool.expire_grace_sec), p_request.trace
  where v_is_held;
  return v_ids;
end
$$;

-- Promise: all the slots that the request asks for, or the reason why not; for what needs more than intake.claim_one does: several
-- slots, or a pool that is paid for. Nothing else stands in the way: the caller has asked intake.refusal. Fewer free slots than
-- asked for is not sold_out: another buyer may want fewer. Second call of the same request: the same claims.
-- Locks: slots → claims → messages, as claim_one; sometimes the mark. p_wait as there; several slots are never waited for.
create function intake.claim_group(p_pool intake.pool_gates, p_request intake.claim_request, p_wait boolean)
returns intake.claim_answer
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  c_reach constant int := 1000;
  v_wanted int := coalesce(p_request.quantity, 1);
  v_one record;
  v_slots record;
  v_ids uuid[];
  v_answer intake.claim_answer;
begin
  v_answer.outcome := case
    when p_pool.is_paid and not p_request.verified and p_request.secret_hash is null then 'secret_required'
    when v_wanted > p_pool.max_quantity then 'quantity_refused'
  end;
  while v_answer.outcome is null loop
    if v_wanted = 1 then
      v_one := intake.any_slot(p_pool.pool_id, p_pool.low_order, p_wait);
      if v_one.id is null then
        v_answer := intake.claim_of_request(p_request.request_key);
        v_answer.outcome := coalesce(v_answer.outcome, case when v_one.busy then 'busy' else 'sold_out' end);
        return v_answer;
      end if;
    end if;
    -- The slots of a group that is too small are given back at once: others of this batch, and other sessions, want them.
    begin
      if v_wanted = 1 then
        select array[v_one.id] as slot_ids, array[v_one.tid] as tids, v_one.sale_order as last_order into v_slots;
      else
        v_slots := intake.pick_slots(p_pool.pool_id, p_pool.low_order, v_wanted);
      end if;
      if cardinality(v_slots.slot_ids) < v_wanted then
        raise exception using errcode = 'SL099';
      end if;
      v_ids := intake.write_group(p_pool, p_request, v_slots.slot_ids, v_slots.tids);
      if v_wanted = 1 then
        v_answer := row(
          'claimed', v_ids[1], v_one.id, case when p_pool.is_paid then 'held' else 'queued' end, now(), p_pool.hold_until, null
        )::intake.claim_answer;
      else
        v_answer := intake.group_answer(v_ids[1]);
        v_answer.outcome := 'claimed';
      end if;
      if v_slots.last_order - p_pool.low_order >= c_reach then
        perform intake.advance_mark(p_pool.pool_id);
      end if;
    exception
      when sqlstate 'SL099' then
        v_answer := intake.claim_of_request(p_request.request_key);
        v_answer.outcome := coalesce(v_answer.outcome, intake.too_few(p_pool.pool_id, p_pool.low_order, v_wanted));
      when unique_violation then
        v_answer := intake.lost_races(p_request, v_slots.slot_ids);
    end;
  end loop;
  return v_answer;
end
$$;

-- Promise: busy where as many slots as are wanted may be free once others have ended, else not_enough. Second call: the same.
-- Locks: none.
create function intake.too_few(p_pool_id text, p_low_order bigint, p_wanted int) returns text
language plpgsql set search_path = '' as $$
declare
  v_free int := (
    select count(*) from (
      select from public.inventory_slots s
      where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order limit p_wanted
    ) f
  );
begin
  return case when v_free < p_wanted then 'not_enough' else 'busy' end;
end
$$;

-- Promise: as intake.lost_race, for all the slots of a group. Second call: the same. Locks: the slots.
create function intake.lost_races(p_request intake.claim_request, p_slot_ids uuid[]) returns intake.claim_answer
language plpgsql set search_path = '' as $$
declare
  v_slot_id uuid;
  v_answer intake.claim_answer;
begin
  foreach v_slot_id in array p_slot_ids loop
    v_answer := intake.lost_race(p_request, v_slot_id);
    exit when v_answer.outcome is not null;
  end loop;
  return v_answer;
end
$$;

-- Promise: as intake.take_slots, in a pool that is paid for: claims are held, each with an order of its own, and no message is
-- written. A request that is neither verified nor has a secret gets no answer here. Second call with the same requests: no answer. Locks: claims in the order of their requests → slots.
create function intake.hold_slots(
  p_pool intake.pool_gates,
  p_requests intake.claim_request[],
  p_slot_ids uuid[],
  p_tids tid[]
)
returns intake.numbered_answer[]
language plpgsql set search_path = '' as $$
declare
  v_begin text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7'
    || left(encode(sha256(convert_to(p_pool.pool_id, 'UTF8')), 'hex'), 3);
  v_grace_until timestamptz := p_pool.hold_until + make_interval(secs => p_pool.expire_grace_sec);
  v_answers intake.numbered_answer[];
begin
  with pair as materialized (
    select (v_begin || substr(gen_random_uuid()::text, 19))::uuid as claim_id, t.*
    from rows from (unnest(p_slot_ids), unnest(p_tids), unnest(p_requests)) as t (
      slot_id, tid,
      ordinal, user_id, request_id, request_key, verified, trusted, guest, secret_hash, address, challenge, difficulty, quantity,
      trace
    )
    where t.slot_id is not null and (t.verified or t.secret_hash is not null)
  ),
  claimed as (
    insert into public.claims (
      claim_id, pool_id, slot_id, user_id, request_id, request_key, state, verified, secret_hash, address, challenge, order_id
    )
    select p.claim_id, p_pool.pool_id, p.slot_id, p.user_id, p.request_id, p.request_key, 'held', p.verified, p.secret_hash,
      case when p_pool.max_per_address is not null then p.address end,
      case when p_pool.challenge_difficulty is not null then p.challenge end, p.claim_id
    from pair p
    order by p.request_key
  ),
  opened as (
    insert into public.orders (
      order_id, pool_id, user_id, verified, seats, unit_price, currency, tenant, livemode, hold_until, grace_until, trace
    )
    select p.claim_id, p_pool.pool_id, p.user_id, p.verified, 1, p_pool.price, p_pool.currency, p_pool.payment_tenant,
      p_pool.payment_livemode, p_pool.hold_until, v_grace_until, p.trace
    from pair p
  ),
  reserved as (
    update public.inventory_slots s
    set status = 'RESERVED', locked_by = p.user_id, locked_at = now()
    from pair p
    where s.ctid = p.tid
  )
  select array_agg((
    p.ordinal, 'claimed', p.claim_id, p.slot_id, 'held', now(), p_pool.hold_until, null
  )::intake.numbered_answer)
  into v_answers
  from pair p;
  return coalesce(v_answers, '{}');
exception
  when unique_violation then
    return '{}';
end
$$;

-- CHECKOUT: the session of the provider at which the buyer pays.

-- Promise: the text as one segment of a path of a URL. Second call: encodes it again. Locks: none.
create function intake.url_segment(p_text text) returns text
language sql immutable parallel safe set search_path = '' as $$
  select string_agg(case
    when c.letter ~ '[A-Za-z0-9_.~-]' then c.letter
    else upper(regexp_replace(encode(convert_to(c.letter, 'UTF8'), 'hex'), '(..)', '%\1', 'g'))
  end, '' order by c.nth)
  from regexp_split_to_table(p_text, '') with ordinality c (letter, nth);
$$;

-- Promise: what the provider is asked for, as it takes it: one line with all seats, the order in the session's and the payment's
-- metadata, cards only, and an end. The provider opens no session that would end within half an hour or after a day. So a
-- request that reaches it a minute late is refused, and opens no session that is not closed. Second call: the same, and a later
-- end. Locks: none.
create function intake.checkout_params(p_order public.orders, p_n int, p_base text) returns jsonb
language plpgsql set search_path = '' as $$
declare
  c_shortest constant interval := '31 minutes';
  c_longest constant interval := '23 hours 59 minutes';
  v_url text := rtrim(p_base, '/') || '/drop/' || intake.url_segment(p_order.pool_id) || '?claim=' || p_order.order_id;
  v_metadata jsonb := jsonb_build_object(
    'claim_id', p_order.order_id, 'user_id', p_order.user_id, 'verified', p_order.verified::text,
    'pool_id', p_order.pool_id, 'checkout', p_order.order_id || ':' || p_n
  );
  v_expires_at timestamptz := least(
    greatest(clock_timestamp() + c_shortest, p_order.hold_until + interval '1 minute'), clock_timestamp() + c_longest
  );
begin
  return jsonb_build_object(
    'mode', 'payment', 'client_reference_id', p_order.order_id,
    'line_items', jsonb_build_array(jsonb_build_object('quantity', p_order.seats, 'price_data', jsonb_build_object(
      'currency', p_order.currency, 'unit_amount', p_order.unit_price, 'product_data', jsonb_build_object('name', coalesce(
        (select d.title from public.pool_details d where d.pool_id = p_order.pool_id), p_order.pool_id
      ))
    ))),
    'metadata', v_metadata, 'payment_intent_data', jsonb_build_object('metadata', v_metadata),
    'allowed_payment_method_types', jsonb_build_array('card'), 'adaptive_pricing', jsonb_build_object('enabled', false),
    'expires_at', floor(extract(epoch from v_expires_at))::bigint, 'success_url', v_url, 'cancel_url', v_url
  );
end
$$;

-- Promise: the one live checkout of the claim's order, or a new one in the state creating: it is committed before the provider is
-- asked for its session. Whose claim it is as in release_own_claim. p_success_base: where the buyer's pages are, to which the
-- provider sends the buyer back. Raises SL001 invalid, SL006 not yours, SL008 no such claim, SL015 not read committed, SL040 the
-- hold is over, or ends within 5 seconds, SL041 paid, SL042 not a claim that is paid for. Second call: the same checkout.
-- Locks: the order.
-- Definer, as all that follow: service_role needs no rights to the tables.
create function public.begin_checkout(
  p_claim_id uuid, p_user_id text, p_success_base text, p_secret_hash bytea default null
)
returns table (
  order_id uuid, n int, idempotency_key text, tenant text, livemode boolean, params jsonb, session_id text, url text, state text,
  hold_until timestamptz, amount bigint, currency text
)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  c_least_left constant interval := '5 seconds';
  v_order public.orders;
  v_n int;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform public.answer_in_cell();
  perform intake.caller_is(p_user_id);
  if p_user_id is null or (p_success_base ~ '^https?://[^[:space:][:cntrl:]]+$' and length(p_success_base) <= 500) is not true then
    raise exception 'whose claim it is, and the address of the buyer''s pages, must be said' using errcode = 'SL001';
  end if;
  select o.* into v_order
  from public.orders o
  where o.order_id = intake.owned_order(p_claim_id, p_user_id, p_secret_hash)
  for update;
  if not found then
    raise exception 'claim % is not paid for', p_claim_id using errcode = 'SL042', hint = 'see confirm_by of its pool';
  elsif v_order.payment_key is not null or v_order.hold_until is null and v_order.ended_at is null then
    raise exception 'order % is paid', v_order.order_id using errcode = 'SL041';
  elsif v_order.ended_at is not null or v_order.hold_until < clock_timestamp() + c_least_left then
    raise exception 'the hold of order % is over', v_order.order_id using errcode = 'SL040', hint = 'claim again';
  end if;
  if not exists (
    select from public.checkouts k where k.order_id = v_order.order_id and k.state in ('creating', 'open')
  ) then
    v_n := (select coalesce(max(k.n), 0) + 1 from public.checkouts k where k.order_id = v_order.order_id);
    insert into public.checkouts (order_id, n, idempotency_key, tenant, livemode, params, next_attempt_at)
    values (
      v_order.order_id, v_n, 'sluice:checkout:' || v_order.order_id || ':' || v_n, v_order.tenant, v_order.livemode,
      intake.checkout_params(v_order, v_n, p_success_base), v_order.hold_until
    );
  end if;
  return query
  select k.order_id, k.n, k.idempotency_key, k.tenant, k.livemode, k.params, k.session_id, k.url, k.state, v_order.hold_until,
    v_order.seats * v_order.unit_price, v_order.currency
  from public.checkouts k
  where k.order_id = v_order.order_id and k.state in ('creating', 'open');
end
$$;

-- Promise: the checkout has its session, however the order stands; a checkout that was being created is open. Answers how the
-- order stands (intake.order_status): the buyer may be sent to the session only while that is held. Raises SL008 if the checkout
-- does not exist, SL007 if it has another session. Second call: the same. Locks: the order.
create function public.checkout_created(p_order_id uuid, p_n int, p_session_id text, p_url text) returns text
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_order public.orders;
begin
  perform public.answer_in_cell();
  select o.* into v_order from public.orders o where o.order_id = p_order_id for update;
  update public.checkouts k
  set session_id = p_session_id, url = coalesce(p_url, k.url), state = case k.state when 'creating' then 'open' else k.state end
  where k.order_id = p_order_id and k.n = p_n and coalesce(k.session_id, p_session_id) = p_session_id;
  if not found then
    if exists (select from public.checkouts k where k.order_id = p_order_id and k.n = p_n) then
      raise exception 'checkout % of order % has another session', p_n, p_order_id using errcode = 'SL007';
    end if;
    raise exception 'no checkout % of order %', p_n, p_order_id using errcode = 'SL008';
  end if;
  return intake.order_status(v_order);
end
$$;

-- Promise: up to p_limit checkouts that the closer has to look at, the longest due first, for p_lease_sec this caller's alone, with a
-- lease_token: live ones of orders that are paid or over, those whose payment is on its way (processing), and those that were paid
-- (complete) and have no decision yet. p_lost says which: those whose session is known, or those for which the provider's answer
-- was lost. No buyer has the address of a lost session, so it cannot be paid: after an outage of the provider there are thousands of
-- these, and the others do not wait for them. Second call: other checkouts, until the lease has run out. Locks: the checkouts; those that
-- another session has locked are skipped.
create function public.take_closing(p_limit int, p_lease_sec int, p_lost boolean) returns setof public.checkouts
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
begin
  return query
  with due as materialized (
    select k.order_id, k.n
    from public.checkouts k
    where (k.session_id is null) = p_lost and k.next_attempt_at <= clock_timestamp() and k.next_attempt_at < 'infinity' and (
      k.state in ('processing', 'complete') or not exists (
        select from public.orders o where o.order_id = k.order_id and o.payment_key is null and o.ended_at is null
          and o.hold_until > clock_timestamp()
      )
    )
    order by k.next_attempt_at
    limit p_limit
    for update skip locked
  )
  update public.checkouts k
  set lease_token = gen_random_uuid(), next_attempt_at = clock_timestamp() + make_interval(secs => p_lease_sec),
    attempts = k.attempts + 1
  from due d
  where k.order_id = d.order_id and k.n = d.n
  returning k.*;
end
$$;

-- Promise: what the provider said about the session: expired (also: there never was one), processing (completed, and the money
-- is on its way: the slots are not kept for it), or complete, with the payment. While that payment has no decision the order is
-- "paying" and keeps its slots. False, and nothing changes, where the lease is lost; p_token is null for a checkout that no
-- closer has taken yet. What is complete or expired stays so. Raises SL001 for another state, SL015 not read committed.
-- Second call: false. Locks: the order.
create function public.close_checkout(p_order_id uuid, p_n int, p_token uuid, p_state text, p_payment_intent text)
returns boolean
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  -- From half a minute to an hour.
  c_poll constant interval := '30 seconds';
  v_checkout public.checkouts;
  v_is_decided boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  elsif (p_state in ('expired', 'processing') or p_state = 'complete' and p_payment_intent is not null) is not true then
    raise exception 'a checkout ends as expired, processing or complete, and then with its payment' using errcode = 'SL001';
  end if;
  perform from public.orders o where o.order_id = p_order_id for update;
  select k.* into v_checkout from public.checkouts k
  where k.order_id = p_order_id and k.n = p_n and k.lease_token is not distinct from p_token;
  if not found then
    return false;
  end if;
  v_is_decided := exists (
    select from public.order_payments p where p.payment_key = v_checkout.tenant || '/' || p_payment_intent
  );
  -- Polls are counted from the first: what Stripe's outages cost before is not the payment's.
  update public.checkouts k
  set lease_token = null, state = case when k.state in ('complete', 'expired') then k.state else p_state end,
    payment_intent = coalesce(k.payment_intent, p_payment_intent),
    completed_at = case
      when p_state = 'complete' and k.state not in ('complete', 'expired') then clock_timestamp() else k.completed_at
    end,
    attempts = case when p_state = 'processing' and k.state <> 'processing' then 0 else k.attempts end,
    next_attempt_at = case
      when p_state = 'processing' and k.state <> 'processing' then clock_timestamp() + c_poll
      when p_state = 'processing' then clock_timestamp() + c_poll * (2 ^ least(k.attempts, 7))
      when p_state = 'complete' and not v_is_decided then clock_timestamp()
      else 'infinity'
    end
  where k.order_id = p_order_id and k.n = p_n;
  if p_state = 'complete' and v_checkout.state not in ('complete', 'expired') then
    update public.orders o
    set hold_until = case when v_is_decided then least(coalesce(o.hold_until, now()), now()) end
    where o.order_id = p_order_id and o.payment_key is null and o.ended_at is null;
  end if;
  return true;
end
$$;

-- Promise: the checkout is looked at again in p_delay_sec, or never where its payment was decided meanwhile; false where the lease is
-- lost. Second call: false. Locks: the checkout.
create function public.checkout_later(p_order_id uuid, p_n int, p_token uuid, p_delay_sec int) returns boolean
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
begin
  update public.checkouts k
  set lease_token = null, next_attempt_at = case
    when k.state = 'complete' and exists (
      select from public.order_payments p where p.payment_key = k.tenant || '/' || k.payment_intent
    ) then 'infinity'
    else clock_timestamp() + make_interval(secs => p_delay_sec)
  end
  where k.order_id = p_order_id and k.n = p_n and k.lease_token = p_token;
  return found;
end
$$;

-- SETTLE: what a payment is for.

-- Promise: these decisions stand, for ever. A session that was paid has kept its slots past the hold: where its payment does not
-- buy them, the hold is over now. The closer has nothing more to ask about these payments, and closes what other session an
-- order has, once it is paid. Second call: a unique violation. Locks: the orders, which the caller has.
create function intake.keep_decisions(p_decided public.order_payments[]) returns void
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_orders uuid[] := array(select d.order_id from unnest(p_decided) d);
begin
  insert into public.order_payments select d.* from unnest(p_decided) d;
  with told as (
    update public.checkouts k
    set next_attempt_at = 'infinity'
    from unnest(p_decided) d
    where k.order_id = any (v_orders) and k.order_id = d.order_id and k.state = 'complete'
      and k.tenant || '/' || k.payment_intent = d.payment_key
    returning d.order_id, d.decision
  )
  update public.orders o
  set hold_until = now()
  where o.order_id in (select t.order_id from told t where t.decision <> 'funds') and o.order_id = any (v_orders)
    and o.payment_key is null and o.ended_at is null and o.hold_until is null;
  update public.orders o
  set payment_key = d.payment_key, hold_until = null
  from unnest(p_decided) d
  where o.order_id = any (v_orders) and o.order_id = d.order_id and d.decision = 'funds';
  update public.checkouts k
  set next_attempt_at = clock_timestamp()
  from unnest(p_decided) d
  where k.order_id = any (v_orders) and k.order_id = d.order_id and d.decision = 'funds' and k.state in ('creating', 'open');
end
$$;

-- Promise: what is to be kept of this decision about a payment. Second call: the same, later. Locks: none.
create function intake.decision_of(p_fact jsonb, p_order_id uuid, p_decision text, p_reason text, p_is_own boolean)
returns public.order_payments
language plpgsql set search_path = '' as $$
begin
  return (
    p_fact ->> 'payment_key', p_order_id, (p_fact ->> 'amount')::bigint, p_fact ->> 'currency', p_decision, p_reason, p_is_own,
    now()
  )::public.order_payments;
end
$$;

-- Promise: the buyer of an order as the one who asked for it, for as many slots. Second call: the same. Locks: none.
create function intake.request_of_order(p_order public.orders) returns intake.claim_request
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_request intake.claim_request;
begin
  select c.user_id, c.verified, true, c.secret_hash, c.address
  into v_request.user_id, v_request.verified, v_request.trusted, v_request.secret_hash, v_request.address
  from public.claims c where c.claim_id = p_order.order_id;
  v_request.quantity := p_order.seats;
  v_request.trace := p_order.trace;
  return v_request;
end
$$;

-- Promise: up to p_wanted free slots, locked: those that the order had first, then any, from the mark upwards. Second call: the
-- same. Locks: the slots; it waits for none.
create function intake.pick_slots_again(
  p_pool intake.pool_gates, p_own uuid[], p_wanted int, out slot_ids uuid[], out tids tid[]
)
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_others record;
begin
  with own as materialized (
    select s.id, s.ctid as tid from public.inventory_slots s
    where s.id = any (p_own) and s.pool_id = p_pool.pool_id and s.status = 'AVAILABLE'
    for update skip locked
  )
  select coalesce(array_agg(o.id), '{}'), coalesce(array_agg(o.tid), '{}') into slot_ids, tids from own o;
  with others as materialized (
    select s.id, s.ctid as tid from public.inventory_slots s
    where s.pool_id = p_pool.pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_pool.low_order and s.id <> all (slot_ids)
    order by s.sale_order
    limit p_wanted - cardinality(slot_ids)
    for update skip locked
  )
  select array_agg(o.id) as ids, array_agg(o.tid) as tids into v_others from others o;
  slot_ids := slot_ids || v_others.ids;
  tids := tids || v_others.tids;
end
$$;

-- Promise: the claims of these orders that were held are on their way: queued, with their messages. Second call: changes nothing.
-- Locks: messages (new) → claims, which the caller has.
create function intake.send_orders(p_order_ids uuid[]) returns void
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := intake.claims_of_orders(p_order_ids);
begin
  with lane as materialized (
    select p.pool_id, intake.lane_of(p.pool_id)::bigint as lane
    from (select distinct o.pool_id from public.orders o where o.order_id = any (p_order_ids)) p
  ),
  seat as materialized (
    select c.claim_id, c.order_id, c.pool_id, c.slot_id, c.user_id, c.verified, o.trace,
      (l.lane << 40) + nextval('pgmq.q_intake_queue_msg_id_seq') as msg_id
    from public.claims c
    join public.orders o on o.order_id = c.order_id
    join lane l on l.pool_id = c.pool_id
    where c.claim_id = any (v_claim_ids) and c.state = 'held'
  ),
  sent as (
    insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
    select s.msg_id, clock_timestamp(), jsonb_build_object(
      'claim_id', s.claim_id, 'pool_id', s.pool_id, 'resource_id', s.slot_id, 'user_id', s.user_id,
      'verified', s.verified, 'order_id', s.order_id, 'state', 'queued'
    ) || coalesce(s.trace, '{}')
    from seat s
  )
  update public.claims c
  set state = 'queued', msg_id = s.msg_id, paid = true, end_as = null, end_reason = null
  from seat s
  where c.claim_id = s.claim_id and c.claim_id = any (v_claim_ids);
end
$$;

-- Promise: new claims stand for those of the order, which have expired, with slots that are free now, all of them or none; null
-- then, else why not: released, voided, closed, limit, sold_out. Raises SL011 where the pool's cache was lost in this moment.
-- Second call: a reason. Locks: the holder's, which the caller has → the pool, where it has to be rebuilt → slots → claims → messages.
create function intake.buy_late(p_order public.orders) returns text
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_request intake.claim_request := intake.request_of_order(p_order);
  v_old record;
  v_pool intake.pool_gates;
  v_slots record;
  v_refusal text;
begin
  select array_agg(c.claim_id order by c.claim_id) as ids, array_agg(c.slot_id) as slots,
    min(c.state::text) filter (where c.state <> 'expired') as other_state
  into v_old
  from public.claims c where c.claim_id = any (intake.claims_of_orders(array[p_order.order_id]));
  if v_old.other_state is not null then
    return v_old.other_state;
  end if;
  loop
    v_pool := intake.open_pool(p_order.pool_id, true);
    v_refusal := (intake.refusal(v_pool, v_request, true)).outcome;
    if v_refusal = 'busy' then
      raise exception 'pool % is busy', p_order.pool_id using errcode = 'SL011';
    elsif v_refusal is not null then
      return v_refusal;
    end if;
    v_slots := intake.pick_slots_again(v_pool, v_old.slots, p_order.seats);
    if cardinality(v_slots.slot_ids) < p_order.seats then
      return 'sold_out';
    end if;
    begin
      perform intake.write_group(v_pool, v_request, v_slots.slot_ids, v_slots.tids, p_order.order_id, v_old.ids);
      return null;
    exception
      -- A slot that a person put on sale while a claim held it: the cache is put right, and others are looked for.
      when unique_violation then
        perform intake.lost_races(v_request, v_slots.slot_ids);
    end;
  end loop;
end
$$;

-- Promise: why this payment never buys the order, first match: another user, a second payment, another amount or currency, or it went
-- back by a decision that is forgotten here (was: the ledger's word, public.resettle_payments there); null where it may.
-- Second call: the same. Locks: none.
create function intake.payment_refusal(p_fact jsonb, p_order public.orders) returns text
language plpgsql stable set search_path = '' as $$
begin
  return case
    -- One without the field was made by a server of the owner, whose users are verified. Providers go on naming a user who was
    -- erased here, and the order is that one's. A payment that names no user is not.
    when p_fact ->> 'user_id' is null
      or p_fact ->> 'user_id' <> p_order.user_id and not audit.is_replacement(p_order.user_id)
      or coalesce(p_fact ->> 'verified', 'true') <> p_order.verified::text then 'other_user'
    when p_order.payment_key is not null then 'second_payment'
    when (p_fact -> 'amount')::text is distinct from (p_order.seats * p_order.unit_price)::text then 'amount'
    when lower(p_fact ->> 'currency') is distinct from p_order.currency then 'currency'
    when p_fact ->> 'was' in ('refund', 'void') then 'went_back'
  end;
end
$$;

-- Promise: whether the payment was made through a session that the provider was asked for here. Second call: the same. Locks: none.
create function intake.is_own_payment(p_fact jsonb, p_order_id uuid) returns boolean
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
begin
  return exists (
    select from public.checkouts k
    where k.order_id = p_order_id and k.idempotency_key = 'sluice:checkout:' || (p_fact ->> 'checkout')
  );
end
$$;

-- Promise: the payment has its decision: a refund where intake.payment_refusal says why, or void where it was that before; funds for
-- claims that are held, and for claims that have expired and can be made again; whatever else is a refund. Second call: a unique
-- violation.
-- Locks: the order, which the caller has → its claims, in the order of their ids → those of buy_late.
create function intake.decide_payment(p_fact jsonb, p_order public.orders) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_reason text := intake.payment_refusal(p_fact, p_order);
  v_is_own boolean := v_reason is distinct from 'other_user' and intake.is_own_payment(p_fact, p_order.order_id);
  v_claim_ids uuid[];
  v_held int;
begin
  if v_reason is null then
    v_claim_ids := intake.claims_of_orders(array[p_order.order_id]);
    perform from public.claims c where c.claim_id = any (v_claim_ids) order by c.claim_id for update;
    select count(*) into v_held from public.claims c where c.claim_id = any (v_claim_ids) and c.state = 'held';
    if v_held = p_order.seats then
      perform intake.send_orders(array[p_order.order_id]);
    else
      v_reason := intake.buy_late(p_order);
    end if;
  end if;
  perform intake.keep_decisions(array[case
    when v_reason is not null then intake.decision_of(
      p_fact, p_order.order_id, case when p_fact ->> 'was' = 'void' then 'void' else 'refund' end, v_reason, v_is_own
    )
    when v_held > 0 then intake.decision_of(p_fact, p_order.order_id, 'funds', 'in_time', v_is_own)
    else intake.decision_of(p_fact, p_order.order_id, 'funds', 'late', v_is_own)
  end]);
end
$$;

-- Promise: of these payments, those that buy claims that are held have their decision, funds in_time: one payment of an order,
-- of the order's tenant and mode, that names the order itself. All others are as before, also where another session has the
-- order or one of its claims: intake.decide_payment waits for it. p_facts as in settle_payments. Second call: changes nothing.
-- Locks: orders, in the order of their ids → claims, in the order of theirs → messages (new); it waits for none.
create function intake.fund_held(p_facts jsonb) returns void
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_orders uuid[] := array(select intake.uuid_or_null(f ->> 'claim_id') from jsonb_array_elements(p_facts) f);
  v_held uuid[];
  v_funds public.order_payments[];
begin
  v_orders := array(
    select o.order_id from public.orders o
    where o.order_id = any (v_orders) and o.payment_key is null and o.ended_at is null
    order by o.order_id for update skip locked
  );
  -- Statements of their own: they see what was committed until the locks were had.
  v_held := array(
    select c.claim_id from public.claims c where c.claim_id = any (intake.claims_of_orders(v_orders)) and c.state = 'held'
    order by c.claim_id for update skip locked
  );
  with whole as materialized (
    select c.order_id, count(*) as seats from public.claims c where c.claim_id = any (v_held) group by c.order_id
  ),
  fit as materialized (
    select distinct on (o.order_id) f.fact, o.order_id
    from jsonb_array_elements(p_facts) as f (fact)
    join public.orders o on o.order_id = intake.uuid_or_null(f.fact ->> 'claim_id')
    join whole w on w.order_id = o.order_id and w.seats = o.seats
    where o.order_id = any (v_orders) and f.fact ->> 'tenant' = o.tenant and f.fact -> 'livemode' = to_jsonb(o.livemode)
      and starts_with(f.fact ->> 'payment_key', o.tenant || '/') and intake.payment_refusal(f.fact, o) is null
      and not exists (select from public.order_payments p where p.payment_key = f.fact ->> 'payment_key')
    -- Of two payments the one that bought the order before this intake was restored.
    order by o.order_id, f.fact ->> 'was', f.fact ->> 'payment_key'
  ),
  one as (
    select distinct on (f.fact ->> 'payment_key') f.fact, f.order_id from fit f order by f.fact ->> 'payment_key', f.order_id
  )
  select array_agg(intake.decision_of(o.fact, o.order_id, 'funds', 'in_time', intake.is_own_payment(o.fact, o.order_id)))
  into v_funds
  from one o;
  if v_funds is not null then
    perform intake.send_orders(array(select d.order_id from unnest(v_funds) d));
    perform intake.keep_decisions(v_funds);
  end if;
end
$$;

-- Promise: the order that a payment names: by the claim_id in it, which is the order's, or that of one of its claims. No row where
-- there is none. Second call: the same. Locks: none.
create function intake.order_of_fact(p_fact jsonb) returns public.orders
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_id uuid := intake.uuid_or_null(p_fact ->> 'claim_id');
  v_order public.orders;
begin
  select o.* into v_order from public.orders o where o.order_id = v_claim_id;
  if not found then
    select o.* into v_order
    from public.claims c join public.orders o on o.order_id = c.order_id
    where c.claim_id = v_claim_id;
  end if;
  return v_order;
end
$$;

-- Promise: whether a payment of this tenant and mode that names no order of this cell may still be for one: such a pool is here, or
-- is on its way from one cell to another, and the claim is not one of a pool without payment. Second call: the same. Locks: none.
create function intake.may_be_ours(p_fact jsonb) returns boolean
language plpgsql stable set search_path = '' as $$
begin
  return not exists (
    select from public.claims c where c.claim_id = intake.uuid_or_null(p_fact ->> 'claim_id')
  ) and (
    exists (select from intake.pool_places p where p.moving_to is not null) or exists (
      select from public.engine_config c
      where c.payment_tenant = p_fact ->> 'tenant' and c.payment_livemode = (p_fact ->> 'livemode')::boolean
    )
  );
end
$$;

-- Promise: what was decided about those of these payments that have a decision: is_own, it was paid through a session of ours;
-- refund_by, who sends it back; claim_ids, what it bought. Second call: the same. Locks: none.
create function intake.decisions_of(p_payment_keys text[])
returns table (
  payment_key text, decision text, reason text, order_id uuid, is_own boolean, refund_by text, claim_ids uuid[]
)
language plpgsql stable set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  select p.payment_key, p.decision, p.reason, p.order_id, p.is_own,
    coalesce((select c.refund_by from public.orders o join public.engine_config c on c.pool_id = o.pool_id
      where o.order_id = p.order_id), 'operator'),
    case p.decision when 'funds' then array(
      select c.claim_id from public.claims c where c.claim_id = any (intake.claims_of_orders(array[p.order_id])) and c.paid
      order by c.claim_id <> p.order_id, c.claim_id
    ) else '{}' end
  from public.order_payments p
  where p.payment_key = any (p_payment_keys);
end
$$;

-- Promise: of these payments, a JSON array of facts as in settle_payment, those that buy claims that are held do so, all in one
-- transaction; returns what is decided about any of them (intake.decisions_of). What has no row is not refused: settle_payment
-- decides it by itself. So no payment waits for another, and one that is invalid spoils none. Raises SL015 not read committed.
-- Second call: the decisions that were kept. Locks: those of intake.fund_held.
create function public.settle_payments(p_facts jsonb)
returns table (
  payment_key text, decision text, reason text, order_id uuid, is_own boolean, refund_by text, claim_ids uuid[]
)
language plpgsql security definer set search_path = '' as $$
declare
  v_keys text[] := array(select f ->> 'payment_key' from jsonb_array_elements(p_facts) f);
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform public.answer_in_cell();
  perform intake.fund_held(p_facts);
  return query select d.* from intake.decisions_of(v_keys) d;
end
$$;

-- Promise: what a payment is for, decided once and kept: funds (its claims are on their way to the ledger), refund, or void (it was
-- refunded before it could buy). Two answers are not kept: ignored (another tenant or mode than the order's, or not for an order
-- at all), and unknown (no such order here: ask again, and at last with p_final, which makes it a refund). The other columns are
-- those of intake.decisions_of. p_fact is {payment_key, tenant, livemode, claim_id, user_id, verified, amount, currency, checkout,
-- was}. For one payment, whatever it is for; those that buy what is held are decided many at a time by settle_payments.
-- Raises SL001 invalid, SL011 ask again, SL015 not read committed. Second call: the decision that was kept.
-- Locks: the holder (advisory, where the pool has a limit) → the order → those of intake.decide_payment.
create function public.settle_payment(p_fact jsonb, p_final boolean)
returns table (decision text, reason text, order_id uuid, is_own boolean, refund_by text, claim_ids uuid[])
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_key text := p_fact ->> 'payment_key';
  v_order public.orders;
  v_pool intake.pool_gates;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform public.answer_in_cell();
  if (starts_with(v_key, (p_fact ->> 'tenant') || '/') and jsonb_typeof(p_fact -> 'livemode') = 'boolean'
     and (p_fact -> 'amount')::text ~ '^-?\d{1,18}$') is not true then
    raise exception 'a payment has a key of its tenant and its id, a livemode and an amount' using errcode = 'SL001';
  end if;
  if not exists (select from public.order_payments p where p.payment_key = v_key) then
    v_order := intake.order_of_fact(p_fact);
    if v_order.order_id is null then
      if p_final is not true or not intake.may_be_ours(p_fact) then
        return query select case when intake.may_be_ours(p_fact) then 'unknown' else 'ignored' end, 'no_order', null::uuid,
          false, 'operator', '{}'::uuid[];
        return;
      end if;
      perform intake.keep_decisions(array[
        intake.decision_of(p_fact, intake.uuid_or_null(p_fact ->> 'claim_id'), 'refund', 'unknown_order', false)
      ]);
    elsif v_order.tenant <> p_fact ->> 'tenant' or v_order.livemode <> (p_fact ->> 'livemode')::boolean then
      return query select 'ignored', 'tenant', v_order.order_id, false, 'operator', '{}'::uuid[];
      return;
    else
      select g.* into v_pool from intake.pool_gates g where g.pool_id = v_order.pool_id;
      if v_pool.has_rules then
        perform intake.lock_holders(v_pool, intake.request_of_order(v_order), true);
      end if;
      select o.* into v_order from public.orders o where o.order_id = v_order.order_id for update;
      if not exists (select from public.order_payments p where p.payment_key = v_key) then
        perform intake.decide_payment(p_fact, v_order);
      end if;
    end if;
  end if;
  return query
  select d.decision, d.reason, d.order_id, d.is_own, d.refund_by, d.claim_ids from intake.decisions_of(array[v_key]) d;
end
$$;

-- RESTORE: what the ledger knows of an order that an intake restored to an earlier moment has forgotten. p_purchase is the
-- ledger's word about a ticket (public.ticket_purchase there): {order_id, payment_key, tenant, livemode, amount, currency, seats,
-- reason, is_own}; null of one that no payment bought.

-- Promise: where the payment came late, and so bought other claims than those that are held here, these have ended as expired: they
-- had when it came. True where some did; false also where another session has one of their slots, or their pool. Second call: false.
-- Locks: the order → its claims, in the order of their ids → those of intake.free_claims.
create function intake.end_replaced(p_purchase jsonb) returns boolean
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_order_id uuid := intake.uuid_or_null(p_purchase ->> 'order_id');
  v_held uuid[];
begin
  perform from public.orders o where o.order_id = v_order_id for update;
  if p_purchase ->> 'reason' is distinct from 'late' then
    return false;
  end if;
  v_held := array(
    select c.claim_id from public.claims c where c.claim_id = any (intake.claims_of_orders(array[v_order_id])) and c.state = 'held'
    order by c.claim_id for update
  );
  if v_held = '{}' or intake.locked_slots(v_held) <> '{}' then
    return false;
  end if;
  update public.orders o set ended_at = now() where o.order_id = v_order_id;
  return intake.free_claims(v_held, 'expired', 'the payment came late') > 0;
end
$$;

-- Promise: the claim of a ticket is one of the order that bought it, and paid. An order that is not known is made, and the decision
-- about its payment is kept: funds. So a refund voids the ticket, and a void refunds it. Nothing where this intake has decided
-- otherwise about the payment, or another payment bought the order: the ticket's claim then has no order, and an operator decides.
-- The order's sessions are not known again. Second call: changes nothing. Locks: the order, which the caller has where it is known.
create function intake.restore_order(p_claim_id uuid, p_purchase jsonb) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_order_id uuid := intake.uuid_or_null(p_purchase ->> 'order_id');
  v_key text := p_purchase ->> 'payment_key';
begin
  if v_order_id is null
    or exists (select from public.order_payments p where p.payment_key = v_key and p.decision <> 'funds')
    or exists (select from public.orders o where o.order_id = v_order_id and o.payment_key <> v_key) then
    return;
  end if;
  insert into public.orders (order_id, pool_id, user_id, verified, seats, unit_price, currency, tenant, livemode, grace_until)
  select v_order_id, c.pool_id, c.user_id, c.verified, b.seats, b.amount / b.seats, lower(b.currency), b.tenant, b.livemode, now()
  from public.claims c
  cross join jsonb_to_record(p_purchase) as b (seats int, amount bigint, currency text, tenant text, livemode boolean)
  where c.claim_id = p_claim_id
  on conflict do nothing;
  if not exists (select from public.order_payments p where p.payment_key = v_key) then
    perform intake.keep_decisions(array[
      intake.decision_of(p_purchase, v_order_id, 'funds', p_purchase ->> 'reason', (p_purchase ->> 'is_own')::boolean)
    ]);
  end if;
  update public.claims c
  set order_id = v_order_id, paid = true, replaces = case when p_purchase ->> 'reason' = 'late' then v_order_id end
  where c.claim_id = p_claim_id and c.paid is null;
end
$$;

-- VOID: a ticket that was paid for ends. The ledger has its tombstone before the slot is on sale again.

-- Promise: the claims that a void is about, as the ledger needs them for its tombstones: those that a payment bought (p_fact), or
-- those that an operator names (p_claim_ids). Claims that were voided before are among them: a courier that died goes on.
-- A payment that bought nothing has no claims. A payment without a decision gets the decision void, and so never buys. p_fact as in
-- settle_payment. If this cell does not have the order, p_final decides: true keeps the decision here, false raises SL008, because
-- another cell may have it. Raises SL015 not read committed. Second call: the same. Locks: the order, if its payment has no decision yet.
create function public.void_targets(p_fact jsonb, p_claim_ids uuid[], p_final boolean default true)
returns table (
  claim_id uuid, resource_id uuid, pool_id text, user_id text, verified boolean, order_id uuid, payment_key text,
  unit_price bigint, currency text
)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_key text := p_fact ->> 'payment_key';
  v_order public.orders;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform public.answer_in_cell();
  if v_key is not null and not exists (select from public.order_payments p where p.payment_key = v_key) then
    v_order := intake.order_of_fact(p_fact);
    if v_order.order_id is null and not p_final then
      raise exception 'no order %', p_fact ->> 'claim_id' using errcode = 'SL008';
    elsif v_order.order_id is null and intake.may_be_ours(p_fact)
       or v_order.tenant = p_fact ->> 'tenant' and v_order.livemode = (p_fact ->> 'livemode')::boolean then
      perform from public.orders o where o.order_id = v_order.order_id for update;
      if not exists (select from public.order_payments p where p.payment_key = v_key) then
        perform intake.keep_decisions(array[intake.decision_of(
          p_fact, coalesce(v_order.order_id, intake.uuid_or_null(p_fact ->> 'claim_id')), 'void', 'refunded_first', false
        )]);
      end if;
    end if;
  end if;
  return query
  select c.claim_id, c.slot_id, c.pool_id, c.user_id::text, c.verified, c.order_id, o.payment_key, o.unit_price, o.currency
  from public.claims c
  left join public.orders o on o.order_id = c.order_id
  where (c.state = 'voided' or c.freed_at is null and c.state <> 'held') and c.claim_id = any (case
    when v_key is null then p_claim_ids
    else array(
      select b.claim_id from public.claims b
      where b.paid and b.claim_id = any (intake.claims_of_orders(array(
        select p.order_id from public.order_payments p where p.payment_key = v_key and p.decision = 'funds'
      )))
    )
  end)
  order by c.claim_id;
end
$$;

-- Promise: those of the claims that live are voided, once the ledger has their tombstones: message or dead letter gone, even if a
-- worker holds it, slots on sale again, CONSUMED ones too. Returns how many of the claims have ended by now. Fewer than were
-- named: ask again, because the message of one moved in this moment, or another session has its slot or its pool. Claims that are held stay:
-- they are released. Raises SL015 not read committed. Second call: the same number, and changes nothing.
-- Locks: orders, in the order of their ids → messages → dead letters → claims → pools → slots, as finish_ends.
create function public.finish_void(p_claim_ids uuid[], p_reason text) returns int
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_msg_ids bigint[];
  v_letter_ids bigint[];
  v_locked uuid[];
  v_void record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform from public.orders o
  where o.order_id = any (array(select c.order_id from public.claims c where c.claim_id = any (p_claim_ids)))
  order by o.order_id for update;
  select array_agg(c.msg_id) filter (where c.state <> 'dead_letter'), array_agg(c.msg_id) filter (where c.state = 'dead_letter')
  into v_msg_ids, v_letter_ids
  from public.claims c where c.claim_id = any (p_claim_ids);
  perform from pgmq.q_intake_queue q where q.msg_id = any (v_msg_ids) order by q.msg_id for update;
  perform from pgmq.q_intake_dlq d where d.msg_id = any (v_letter_ids) order by d.msg_id for update;
  perform from public.claims c where c.claim_id = any (p_claim_ids) order by c.claim_id for update;
  v_locked := intake.locked_slots(p_claim_ids);
  select coalesce(array_agg(c.claim_id), '{}') as ids, coalesce(array_agg(c.slot_id), '{}') as slot_ids,
    array_agg(c.msg_id) filter (where c.state <> 'dead_letter') as msg_ids,
    array_agg(c.msg_id) filter (where c.state = 'dead_letter') as letter_ids
  into v_void
  from public.claims c
  where c.claim_id = any (p_claim_ids) and coalesce(c.freed_at, 'infinity') = 'infinity' and c.state <> 'held'
    and c.slot_id <> all (v_locked) and (
      c.msg_id is null or c.msg_id = any (case when c.state = 'dead_letter' then v_letter_ids else v_msg_ids end)
    );
  if v_void.ids <> '{}' then
    delete from pgmq.q_intake_queue q where q.msg_id = any (v_void.msg_ids);
    perform pgmq.archive('intake_dlq', v_void.letter_ids);
    update public.inventory_slots s set status = 'RESERVED' where s.id = any (v_void.slot_ids) and s.status = 'CONSUMED';
    update public.claims c set end_as = null, end_reason = null where c.claim_id = any (v_void.ids) and c.end_as is not null;
    perform intake.free_claims(v_void.ids, 'voided', p_reason);
  end if;
  return (select count(*) from unnest(p_claim_ids) i where not exists (
    select from public.claims c where c.claim_id = i and coalesce(c.freed_at, 'infinity') = 'infinity'
  ));
end
$$;

-- Promise: all that this cell knows of an order: the order with its status, its claims, also those that were replaced, its
-- checkouts, and what was decided about its payments. Null if the order does not exist. Second call: the same. Locks: none.
create function public.order_details(p_order_id uuid) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object(
    'order', to_jsonb(o) || jsonb_build_object('status', intake.order_status(o), 'amount', o.seats * o.unit_price),
    'claims', (
      select jsonb_agg(jsonb_build_object(
        'claim_id', c.claim_id, 'resource_id', c.slot_id, 'state', c.state, 'label', m.label, 'replaces', c.replaces,
        'claimed_at', c.claimed_at, 'ended_at', c.freed_at, 'end_reason', c.end_reason, 'ending', c.end_as is not null
      ) order by c.claim_id)
      from public.claims c
      left join public.slot_manifest m on m.slot_id = c.slot_id
      where c.claim_id = any (intake.claims_of_orders(array[o.order_id]))
    ),
    'checkouts', (
      select coalesce(jsonb_agg(to_jsonb(k) - array['order_id', 'lease_token'] order by k.n), '[]')
      from public.checkouts k where k.order_id = o.order_id
    ),
    'decisions', (
      select coalesce(jsonb_agg(to_jsonb(p) - 'order_id' order by p.decided_at, p.payment_key), '[]')
      from public.order_payments p where p.order_id = o.order_id
    )
  )
  from public.orders o
  where o.order_id = p_order_id;
$$;

-- DETAILS: what buyers read about a pool.

-- Promise: what buyers read about the pool, {title, starts_at, time_zone, place, picture_url, text}, or null. Second call: the
-- same. Locks: none.
create function public.pool_details(p_pool_id text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select to_jsonb(d) - 'pool_id' from public.pool_details d where d.pool_id = p_pool_id;
$$;

-- Promise: the pool's details with what p_details names (as public.pool_details has them; null takes one away), with one audit row
-- that tells what was before; returns them. Raises SL001 for an unknown name or a value that the table refuses, SL002 for no
-- such pool. Second call: the same, and no audit row. Locks: the row.
create function public.set_pool_details(p_pool_id text, p_details jsonb, p_actor text, p_reason text default null)
returns jsonb
language plpgsql security definer set search_path = '' as $$
declare
  c_names constant text[] := '{title,starts_at,time_zone,place,picture_url,text}';
  v_old public.pool_details;
  v_new public.pool_details;
begin
  if jsonb_typeof(p_details) is distinct from 'object' or exists (
    select from jsonb_object_keys(p_details) k where k <> all (c_names)
  ) then
    raise exception 'the details of a pool are an object of %', array_to_string(c_names, ', ') using errcode = 'SL001';
  elsif not exists (
    select from public.engine_config c where c.pool_id = p_pool_id
    union all
    select from intake.pool_totals t where t.pool_id = p_pool_id
  ) then
    raise exception 'no pool %', p_pool_id using errcode = 'SL002';
  end if;
  select d.* into v_old from public.pool_details d where d.pool_id = p_pool_id for update;
  v_new := jsonb_populate_record(v_old, p_details || jsonb_build_object('pool_id', p_pool_id));
  if v_new is distinct from v_old then
    insert into public.pool_details as d select v_new.*
    on conflict (pool_id) do update set title = excluded.title, starts_at = excluded.starts_at,
      time_zone = excluded.time_zone, place = excluded.place, picture_url = excluded.picture_url, text = excluded.text;
    insert into audit.audit_logs (actor, action, subject, reason, details)
    values (p_actor, 'pool_details', 'pool ' || p_pool_id, p_reason,
      jsonb_build_object('before', to_jsonb(v_old) - 'pool_id', 'after', to_jsonb(v_new) - 'pool_id'));
  end if;
  return public.pool_details(p_pool_id);
exception
  when check_violation or not_null_violation or invalid_text_representation or invalid_datetime_format
    or datetime_field_overflow or invalid_parameter_value then
    raise exception 'a detail of the pool is refused: %', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: what a ticket for this slot is for, and what it calls the slot; no row where neither is known. Second call: the same.
-- Locks: none.
create function public.seat_details(p_pool_id text, p_resource_id uuid)
returns table (title text, starts_at timestamptz, time_zone text, place text, label text)
language sql stable security definer set search_path = '' as $$
  select d.title, d.starts_at, d.time_zone, d.place, m.label::text
  from (select) one
  left join public.pool_details d on d.pool_id = p_pool_id
  left join public.slot_manifest m on m.slot_id = p_resource_id and m.pool_id = p_pool_id
  where d.pool_id is not null or m.slot_id is not null;
$$;

create trigger pool_details_are_noted
  after insert or update or delete on public.pool_details
  for each row execute function audit.note_rule('pool', 'pool_id');
