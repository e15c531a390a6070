-- ORDERS, for operators: what their commands and pages ask beside 20260224100017_orders.sql. Watching costs the doors nothing: each
-- look reads what is due, and no more than 10000 rows of a kind.

-- Promise: one look at the orders that are not settled: held (their hold runs), paying (a session is paid and undecided), past_bound
-- (they hold slots for longer than hold and grace allow, where c_slack_sec is what a worker takes; or a session of theirs was paid more
-- than c_decide_sec ago, and is undecided) with past_bound_sec, for how long the oldest of them is, and to_close (sessions that the
-- closer has to look at now, and those that it has tried before and not ended; one whose payment is on its way waits for that).
-- Second call: the same, later. Locks: none.
create function intake.order_level() returns jsonb
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  c_slack_sec constant int := 5;
  c_decide_sec constant int := 60;
  v_now constant timestamptz := clock_timestamp();
  v_held bigint;
  v_late record;
  v_open record;
begin
  -- Pool by pool, as the index has them: what is over is at the head of each.
  select coalesce(sum(h.orders), 0) into v_held
  from public.engine_config c
  cross join lateral (
    select count(*) as orders from (
      select from public.orders o
      where o.pool_id = c.pool_id and o.hold_until is not null and o.ended_at is null limit 10000
    ) waiting
  ) h
  where c.price is not null;
  select count(*) as orders, max(extract(epoch from v_now - l.grace_until)) as oldest_sec into v_late
  from public.engine_config c
  cross join lateral (
    select o.grace_until from public.orders o
    where o.pool_id = c.pool_id and o.hold_until < v_now and o.ended_at is null
      and o.grace_until < v_now - make_interval(secs => c_slack_sec)
    order by o.hold_until limit 10000
  ) l
  where c.price is not null;
  select count(*) filter (where k.is_due or k.state <> 'processing') as due, count(*) filter (where k.state = 'complete') as paid,
    count(distinct k.order_id) filter (where k.undecided_sec > 0) as late, max(k.undecided_sec) filter (where k.undecided_sec > 0) as oldest_sec
  into v_open
  from (
    select d.*, case when d.state = 'complete' then extract(epoch from v_now - d.completed_at) - c_decide_sec end as undecided_sec
    from (
      (
        select k.order_id, k.state, k.completed_at, true as is_due from public.checkouts k
        where k.next_attempt_at <= v_now order by k.next_attempt_at limit 10000
      )
      union all
      (
        select k.order_id, k.state, k.completed_at, false from public.checkouts k
        where k.next_attempt_at > v_now and k.next_attempt_at < 'infinity' and k.attempts > 1 order by k.next_attempt_at limit 10000
      )
    ) d
  ) k;
  return jsonb_build_object('held', v_held, 'paying', v_open.paid, 'past_bound', v_late.orders + v_open.late,
    'past_bound_sec', round(greatest(v_late.oldest_sec, v_open.oldest_sec), 1), 'to_close', v_open.due);
end
$$;

-- Promise: p_limit orders of those that match what is not null, behind the first p_offset, newest first, in the order of their ids,
-- which begin with the time, from p_after on. By user it asks an index; by pool or status alone it walks the orders until it has a page.
-- Second call: the same, and what is new. Locks: none. Definer, as all that follow: service_role has no rights to the tables.
create function public.order_list(
  p_pool_id text default null,
  p_user_id text default null,
  p_status text default null,
  p_after uuid default null,
  p_limit int default 100,
  p_offset int default 0
)
returns table (
  order_id uuid, pool_id text, user_id text, verified boolean, status text, seats int, unit_price bigint, amount bigint,
  currency text, ordered_at timestamptz, hold_until timestamptz, payment_key text
)
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
  return query
  select o.order_id, o.pool_id, o.user_id::text, o.verified, s.status, o.seats, o.unit_price, o.seats * o.unit_price,
    o.currency, (select c.claimed_at from public.claims c where c.claim_id = o.order_id), o.hold_until, o.payment_key
  from public.orders o
  cross join lateral intake.order_status(o) s (status)
  where (p_pool_id is null or o.pool_id = p_pool_id)
    and (p_user_id is null or o.order_id in (select c.order_id from public.claims c where c.user_id = p_user_id))
    and (p_status is null or s.status = p_status)
    and (p_after is null or o.order_id < p_after)
  order by o.order_id desc
  limit p_limit offset p_offset;
end
$$;

-- Promise: what operators did here to the claims of an order, oldest first. Second call: the same, later. Locks: none.
create function public.order_audit(p_order_id uuid) returns setof audit.audit_logs
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select a.*
  from public.claims c
  join audit.audit_logs a on a.details ->> 'claim_id' = c.claim_id::text or a.details ->> 'ended_claim_id' = c.claim_id::text
  where c.claim_id = any (intake.claims_of_orders(array[p_order_id]))
  order by a.id;
$$;

-- Promise: the pools that are paid for, with the tenant and mode of their payments, by name. Second call: the same. Locks: none.
create function public.paid_pools() returns table (pool_id text, payment_tenant text, payment_livemode boolean)
language sql stable security definer set search_path = '' as $$
  select c.pool_id, c.payment_tenant, c.payment_livemode
  from public.engine_config c where c.confirm_by = 'payment' order by c.pool_id;
$$;

-- Promise: those of the payments (tenant/payment) that have a decision here. Second call: the same. Locks: none.
create function public.decided_payments(p_payment_keys text[]) returns setof text
language sql stable security definer set search_path = '' as $$
  select p.payment_key from public.order_payments p where p.payment_key = any (p_payment_keys);
$$;

-- Promise: those of the sessions that are known here. is_over: the order has ended or was bought, and a minute more than its grace
-- has passed, so that the session must not be open any more. Second call: the same. Locks: none.
create function public.find_checkouts(p_session_ids text[]) returns table (session_id text, order_id uuid, is_over boolean)
language sql stable security definer set search_path = '' as $$
  select k.session_id, k.order_id,
    (o.ended_at is not null or o.payment_key is not null) and o.grace_until < now() - interval '1 minute'
  from public.checkouts k
  join public.orders o on o.order_id = k.order_id
  where k.session_id = any (p_session_ids);
$$;
