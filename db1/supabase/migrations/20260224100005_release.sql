-- INTAKE, part 6: look at a claim, release it, let its hold run out. A claim whose message no worker ever took ends here and
-- now. A worker may still write the ticket of one that was taken: it stays held, with end_as, until the ledger has a
-- tombstone (20260224100013_ends.sql).

create type intake.claim_view as (
  claim_id uuid,
  resource_id uuid,
  pool_id text,
  user_id text,
  request_id text,
  state text,
  verified boolean,
  claimed_at timestamptz,
  hold_until timestamptz,
  ended_at timestamptz,
  end_reason text,
  ahead bigint,
  ending boolean,
  secret_matches boolean,
  label text,
  "order" jsonb
);

-- Promise: the first 200 messages of a lane, in their order, and how many of them stand before the first that no worker has
-- taken yet: those are being carried, or wait for another attempt. Empty where the lane is. Second call: the same. Locks: none.
create function intake.queue_head(p_lane int, out msg_ids bigint[], out taken int)
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  c_look_at constant int := 200;
begin
  select coalesce(array_agg(m.msg_id order by m.msg_id), '{}'),
    coalesce(min(m.place) filter (where m.read_ct = 0) - 1, count(*))
  into msg_ids, taken
  from (
    select q.msg_id, q.read_ct, row_number() over (order by q.msg_id) as place
    from pgmq.q_intake_queue q
    where q.msg_id >= p_lane::bigint << 40 and q.msg_id < (p_lane::bigint + 1) << 40
    order by q.msg_id
    limit c_look_at
  ) m;
end
$$;

-- Promise: about how many messages of its lane are carried before this one: counted within the head of the lane, and estimated
-- beyond it. All lanes share the numbers in the ids, so the difference of two ids is not a count; the density of ids at the head
-- is the measure for the rest. Second call: the same. Locks: none.
create function intake.ahead_of(p_msg_id bigint, p_head bigint[], p_taken int) returns bigint
language sql immutable parallel safe set search_path = '' as $$
  select greatest(0, width_bucket(p_msg_id - 1, p_head) - p_taken + case
    when p_msg_id > p_head[cardinality(p_head)] then (p_msg_id - p_head[cardinality(p_head)]) * (cardinality(p_head) - 1)
      / greatest(1, p_head[cardinality(p_head)] - p_head[1])
    else 0
  end);
$$;

-- Promise: the claim, or no row. ahead is about how many messages of its lane, which is its pool's, are carried before its own
-- while it is on the queue (intake.ahead_of); else null. ending: it will end as soon as the ledger knows, and holds its slot
-- until then. secret_matches: whether p_secret_hash is the claim's; null where it has none. label: the slot's. order: what
-- intake.order_view says, where the claim is of an order; hold_until is then the order's. Second call: the same. Locks: none.
-- Definer: the row is all a caller needs.
create function public.get_claim(p_claim_id uuid, p_secret_hash bytea default null) returns setof intake.claim_view
language plpgsql stable security definer set search_path = ''
set enable_seqscan = off as $$
begin
  perform public.answer_in_cell();
  return query
  select c.claim_id, c.slot_id, c.pool_id, c.user_id::text, c.request_id::text, c.state::text, c.verified,
    c.claimed_at, coalesce(c.hold_until, (g.view ->> 'hold_until')::timestamptz), c.freed_at, c.end_reason,
    (
      select intake.ahead_of(c.msg_id, h.msg_ids, h.taken) from intake.queue_head((c.msg_id >> 40)::int) h
      where c.state in ('queued', 'validated')
    ),
    c.end_as is not null, c.secret_hash = coalesce(p_secret_hash, ''),
    (select m.label::text from public.slot_manifest m where m.slot_id = c.slot_id), g.view
  from public.claims c
  left join lateral (select intake.order_view(c.order_id) as view where c.order_id is not null) g on true
  where c.claim_id = p_claim_id;
end
$$;

-- Promise: the order of a claim, where the claim belongs to this buyer: a verified one to its user, an unverified one to the holder of
-- its secret. Null for a claim without an order. Raises SL006 not yours, SL008 no such claim. Second call: the same. Locks: none:
-- whose claim it is never changes.
create function intake.owned_order(p_claim_id uuid, p_user_id text, p_secret_hash bytea) returns uuid
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim public.claims;
begin
  select c.* into v_claim from public.claims c where c.claim_id = p_claim_id;
  if not found then
    raise exception 'no claim %', p_claim_id using errcode = 'SL008';
  elsif (
    case when v_claim.verified then v_claim.user_id = p_user_id else v_claim.secret_hash = p_secret_hash end
  ) is not true then
    raise exception 'claim % is not of this user', p_claim_id
      using errcode = 'SL006', hint = 'an unverified claim needs the secret that it was made with';
  end if;
  return v_claim.order_id;
end
$$;

-- Promise: the ids of all claims of these orders: the first of an order has the order's own id, the others name it.
-- Second call: the same. Locks: none.
create function intake.claims_of_orders(p_order_ids uuid[]) returns uuid[]
language plpgsql stable set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  return p_order_ids || array(
    select c.claim_id from public.claims c where c.order_id = any (p_order_ids) and c.order_id <> c.claim_id
  );
end
$$;

-- Promise: the claim, or nulls where there is none; locked with all that belong to its order. Second call: the same.
-- Locks: the order → its claims, in the order of their ids.
create function intake.lock_group(p_claim_id uuid) returns public.claims
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim public.claims;
begin
  select c.* into v_claim from public.claims c where c.claim_id = p_claim_id;
  if v_claim.order_id is not null then
    perform from public.orders o where o.order_id = v_claim.order_id for update;
    perform from public.claims c where c.claim_id = any (intake.claims_of_orders(array[v_claim.order_id]))
    order by c.claim_id for update;
  end if;
  select c.* into v_claim from public.claims c where c.claim_id = p_claim_id for update;
  return v_claim;
end
$$;

-- Promise: those of the slots that were reserved by hand, and so have no claim that could be ended, and that no message
-- holds any more; the caller has removed its own. Second call: the same. Locks: none.
create function intake.reserved_by_hand(p_slot_ids uuid[]) returns uuid[]
language plpgsql stable set search_path = '' as $$
declare
  v_slot_ids uuid[] := array(
    select s.id from public.inventory_slots s
    where s.id = any (p_slot_ids) and s.status = 'RESERVED'
      and not exists (select from public.claims c where c.slot_id = s.id and c.freed_at is null)
  );
begin
  -- Nearly always there are none, and then the queue need not be read.
  if v_slot_ids <> '{}' then
    v_slot_ids := array(select u from unnest(v_slot_ids) u except select h.slot_id from intake.held_by_hand h);
  end if;
  return v_slot_ids;
end
$$;

-- Promise: ends claims whose messages the caller has just withdrawn, as p_state or as each was going to end (end_as), and
-- puts their slots back on sale, with those of p_slot_ids that were reserved by hand. Returns how many claims ended.
-- Second call: 0.
-- Locks: the claims, which the caller holds already → those of share_pools → those of return_slots. One call for all that a
-- transaction frees: the order of the pools holds within it.
create function intake.free_claims(
  p_claim_ids uuid[],
  p_state public.claim_state,
  p_reason text,
  p_slot_ids uuid[] default '{}'
)
returns int
language plpgsql set search_path = '' as $$
declare
  v_slot_ids uuid[];
  v_others uuid[];
begin
  -- Not "freed_at is null": planned while there were few claims, that reads the whole of one_live_claim_per_slot.
  with ended as (
    update public.claims c
    set state = coalesce(c.end_as, p_state), freed_at = now(), end_reason = coalesce(c.end_reason, p_reason), msg_id = null,
      end_as = null
    where c.claim_id = any (p_claim_ids) and coalesce(c.freed_at, 'infinity') = 'infinity'
    returning c.slot_id
  )
  select coalesce(array_agg(e.slot_id), '{}') into v_slot_ids from ended e;
  perform intake.share_pools(array(select distinct c.pool_id from public.claims c where c.claim_id = any (p_claim_ids)));
  v_others := array(select u from unnest(p_slot_ids) u except select u from unnest(v_slot_ids) u);
  perform intake.return_slots(v_slot_ids || intake.reserved_by_hand(v_others));
  return cardinality(v_slot_ids);
end
$$;

-- The messages that no worker has taken: never, or each time handed back untried (intake.finish_later). The ledger cannot
-- have their claims. A message that was replayed is new, and its claim is not: the worker that had the old one may be slow.
create view intake.untaken_messages as
select q.msg_id
from pgmq.q_intake_queue q
where not q.message ? 'replayed_from'
  and (q.read_ct = 0 or q.message -> 'untried' = jsonb_build_array(q.msg_id, q.read_ct));

-- Promise: whether the pool commits by a hook or a function of its own. No tombstone can refuse such a commit, and no ledger
-- tells whether a worker that died had made it. Second call: the same. Locks: none.
create function intake.commits_elsewhere(p_pool_id text) returns boolean
language plpgsql stable set search_path = '' as $$
begin
  return exists (
    select from public.engine_config g
    cross join intake.default_rules d
    where g.pool_id = p_pool_id and (g.commit_webhook_url is not null or g.commit_rpc_name <> d.commit_rpc_name)
  );
end
$$;

-- Promise: the claims, which the caller has locked and whose messages some worker may have taken, will end as p_end_as with
-- this reason: take_ends finds them. Those that have ended, are tickets or are going to end already stay as they are.
-- Returns how many. Second call: 0. Locks: the claims.
create function intake.begin_ends(p_claim_ids uuid[], p_end_as public.claim_state, p_reason text) returns int
language plpgsql set search_path = '' as $$
declare
  v_begun int;
begin
  update public.claims c
  set end_as = p_end_as, end_reason = p_reason, end_due = now()
  where c.claim_id = any (p_claim_ids) and c.state in ('queued', 'validated', 'dead_letter') and c.end_as is null;
  get diagnostics v_begun = row_count;
  return v_begun;
end
$$;

-- Promise: the held claims of the order, which the caller has locked, are released: at once where no session of the provider is
-- open, else once it is closed or the grace has run out (expire_holds). Raises SL041 where a session was paid already.
-- Second call: changes nothing. Locks: those of free_claims.
create function intake.release_order(p_order_id uuid, p_reason text) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := intake.claims_of_orders(array[p_order_id]);
begin
  update public.orders o
  set hold_until = least(o.hold_until, now()), grace_until = least(o.grace_until, now() + (o.grace_until - o.hold_until)),
    end_as = 'released'
  where o.order_id = p_order_id and o.hold_until is not null;
  if not found then
    raise exception 'order % is paid', p_order_id
      using errcode = 'SL041', hint = 'what was paid for ends by a refund or a void';
  end if;
  update public.claims c
  set end_as = 'released', end_reason = p_reason
  where c.claim_id = any (v_claim_ids) and c.state = 'held' and c.end_as is null;
  update public.checkouts k
  set next_attempt_at = clock_timestamp()
  where k.order_id = p_order_id and k.state in ('creating', 'open') and k.lease_token is null;
  if not exists (select from public.checkouts k where k.order_id = p_order_id and k.state in ('creating', 'open')) then
    update public.orders o set ended_at = now() where o.order_id = p_order_id;
    perform intake.free_claims(
      array(select c.claim_id from public.claims c where c.claim_id = any (v_claim_ids) and c.state = 'held'), 'released', p_reason
    );
  end if;
end
$$;

-- Promise: the claims, which the caller has locked and which are queued or validated, are released: at once where no worker took
-- their messages, else once the ledger knows. Raises SL009 as intake.give_back_claim. Second call: changes nothing.
-- Locks: messages → those of free_claims.
create function intake.release_queued(p_claim_ids uuid[], p_pool_id text, p_reason text) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_untaken uuid[];
begin
  with withdrawn as (
    delete from intake.untaken_messages q
    where q.msg_id = any (array(
      select c.msg_id from public.claims c where c.claim_id = any (p_claim_ids) and c.state = 'queued' and c.end_as is null
    ))
    returning q.msg_id
  )
  select coalesce(array_agg(c.claim_id), '{}') into v_untaken
  from public.claims c join withdrawn w on w.msg_id = c.msg_id
  where c.claim_id = any (p_claim_ids);
  if cardinality(v_untaken) < cardinality(p_claim_ids) and intake.commits_elsewhere(p_pool_id) then
    raise exception 'claim % is with the bridge', p_claim_ids[1]
      using errcode = 'SL009', hint = 'look again in a moment: it is committed, or ends with a reason';
  end if;
  perform intake.free_claims(v_untaken, 'released', p_reason);
  perform intake.begin_ends(p_claim_ids, 'released', p_reason);
end
$$;

-- Promise: the claim is released and its slot back on sale, or it is ending: one that a worker has taken is released when
-- the ledger knows (intake.begin_ends), unless the ledger has its ticket. With it go all claims of its order. Where p_user_id is not
-- null the buyer asks: a verified claim must be of this user, an unverified one must have this secret. Raises SL006 not yours, SL008
-- no such claim, SL009 a worker of a pool that commits elsewhere has taken it (its target may have it: intake.commits_elsewhere),
-- SL010 committed, or another claim of its order is, SL013 dead letter, SL041 paid.
-- Second call: the released or ending claim again. Locks: order → claims → messages → those of free_claims.
create function intake.give_back_claim(
  p_claim_id uuid, p_user_id text default null, p_reason text default null, p_secret_hash bytea default null
)
returns setof intake.claim_view
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim public.claims := intake.lock_group(p_claim_id);
  v_group record;
begin
  if v_claim.claim_id is null then
    raise exception 'no claim %', p_claim_id using errcode = 'SL008';
  elsif p_user_id is not null then
    perform intake.owned_order(p_claim_id, p_user_id, p_secret_hash);
  end if;
  select array_agg(c.claim_id order by c.claim_id) filter (where c.freed_at is null and c.end_as is null) as live,
    bool_or(c.state = 'committed') as has_ticket, bool_or(c.state = 'dead_letter' and c.end_as is null) as has_letter
  into v_group
  from public.claims c
  where c.claim_id = any (array[p_claim_id] || intake.claims_of_orders(array[v_claim.order_id]));
  if v_claim.paid and v_claim.freed_at is null then
    raise exception 'claim % is paid', p_claim_id
      using errcode = 'SL041', hint = 'what was paid for ends by a refund or a void';
  elsif v_claim.freed_at is not null or v_claim.end_as is not null then
    null;
  elsif v_claim.state = 'held' then
    perform intake.release_order(v_claim.order_id, coalesce(p_reason, 'released'));
  elsif v_group.has_ticket then
    raise exception 'claim % is a ticket already', p_claim_id using errcode = 'SL010';
  elsif v_group.has_letter then
    raise exception 'claim % waits in the dead letters', p_claim_id
      using errcode = 'SL013', hint = 'an operator replays or discards it';
  else
    perform intake.release_queued(v_group.live, v_claim.pool_id, coalesce(p_reason, 'released'));
  end if;
  return query select * from public.get_claim(p_claim_id, p_secret_hash);
end
$$;

-- Promise: the buyer gives the slot of its own claim back, as intake.give_back_claim says. Raises SL001 where no user is named:
-- an operator acts by release_claim_as_operator, which leaves an audit row. Raises SL001 for a reason of more than 500 characters:
-- signed-in users call this, and the claim keeps what they say. Raises SL015 not read committed.
-- Second call and locks: as there.
-- Definer: owners have no rights to the tables.
create function public.release_own_claim(
  p_claim_id uuid, p_user_id text, p_reason text default null, p_secret_hash bytea default null
)
returns setof intake.claim_view
language plpgsql security definer set search_path = '' as $$
declare
  c_reason_chars constant int := 500;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  perform intake.caller_is(p_user_id);
  if p_user_id is null then
    raise exception 'whose claim it is must be said'
      using errcode = 'SL001', hint = 'an operator calls release_claim_as_operator';
  elsif length(p_reason) > c_reason_chars then
    raise exception 'a reason has at most % characters', c_reason_chars using errcode = 'SL001';
  end if;
  return query select * from intake.give_back_claim(p_claim_id, p_user_id, p_reason, p_secret_hash);
end
$$;

-- Promise: the slots of the claims that this session must leave: those that another session has locked, and all of a pool that
-- another session has for itself (intake.rebuild_inventory). The others are locked by this one until it ends, and so are their pools:
-- intake.share_pools does not wait for these. Second call: the same.
-- Locks: the pools (advisory, shared), in the order of their names → the slots; it waits for none of them.
create function intake.locked_slots(p_claim_ids uuid[]) returns uuid[]
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_pool_ids text[] := array(
    select k.pool_id
    from (select distinct c.pool_id from public.claims c where c.claim_id = any (p_claim_ids) order by c.pool_id) k
    where pg_catalog.pg_try_advisory_xact_lock_shared(intake.pool_lock_key(k.pool_id))
  );
  v_slot_ids uuid[] := array(
    select c.slot_id from public.claims c where c.claim_id = any (p_claim_ids) and c.pool_id = any (v_pool_ids)
  );
  v_free uuid[];
begin
  v_free := array(select s.id from public.inventory_slots s where s.id = any (v_slot_ids) for update skip locked);
  return array(
    select c.slot_id from public.claims c where c.claim_id = any (p_claim_ids) and c.pool_id <> all (v_pool_ids)
    union
    (select s.id from public.inventory_slots s where s.id = any (v_slot_ids) except select f from unnest(v_free) f)
  );
end
$$;

-- Promise: the pools with holds that have run out, of claims (p_what hold) or orders (order), or with claims that are to end now (end), in random order: a part
-- that is smaller than their number reaches all of them in time. A pool whose cache is lost is left out: its claims end when it
-- is rebuilt. One look in the index for each pool that has such claims, due or not, however many these are.
-- Second call: the same in another order. Locks: none.
create function intake.due_pools(p_what text) returns text[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_pool_id text := '';
  v_is_due boolean;
  v_pools text[] := '{}';
begin
  loop
    if p_what = 'end' then
      select c.pool_id, c.end_due <= clock_timestamp() into v_pool_id, v_is_due
      from public.claims c where c.pool_id > v_pool_id and c.end_as is not null
      order by c.pool_id, c.end_due limit 1;
    elsif p_what = 'order' then
      select o.pool_id, o.hold_until <= now() into v_pool_id, v_is_due
      from public.orders o
      where o.pool_id > v_pool_id and o.hold_until is not null and o.ended_at is null
      order by o.pool_id, o.hold_until limit 1;
    else
      select c.pool_id, c.hold_until < now() into v_pool_id, v_is_due
      from public.claims c
      where c.pool_id > v_pool_id and c.hold_until is not null and c.freed_at is null and c.end_as is null
      order by c.pool_id, c.hold_until limit 1;
    end if;
    exit when not found;
    if v_is_due then
      v_pools := v_pools || v_pool_id;
    end if;
  end loop;
  return array(
    select p.pool_id from unnest(v_pools) p (pool_id)
    where exists (select from intake.pool_marks m where m.pool_id = p.pool_id)
      or not exists (select from intake.pool_totals t where t.pool_id = p.pool_id and t.slots > 0)
    order by random()
  );
end
$$;

-- Promise: up to p_limit claims whose hold has run out (p_what hold), or that are to end now (end), or orders whose hold is over and
-- whose session is closed, or whose grace is over (order): as many of each pool; what a
-- pool leaves of its share is the others'. Within a pool the longest overdue come first. Fewer than p_limit: no more can be had
-- now. Second call: the same, unless they changed. Locks: the claims or orders; those that another session has locked are skipped.
create function intake.lock_due(p_what text, p_limit int) returns uuid[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_pools text[] := intake.due_pools(p_what);
  v_share int := greatest(1, p_limit / greatest(1, cardinality(v_pools)));
  v_due uuid[] := '{}';
  v_left int := p_limit;
  v_offset int;
begin
  if v_pools = '{}' then
    return '{}';
  end if;
  -- First the shares, then what is left of p_limit for the pools that have more.
  foreach v_offset in array array[0, v_share] loop
    if p_what = 'end' then
      v_due := v_due || array(
        select d.claim_id
        from unnest(v_pools) p (pool_id)
        cross join lateral (
          select c.claim_id from public.claims c
          where c.pool_id = p.pool_id and c.end_as is not null and c.end_due <= clock_timestamp()
          order by c.end_due
          offset v_offset limit case v_offset when 0 then v_share else v_left end
          for update skip locked
        ) d
        limit v_left
      );
    elsif p_what = 'order' then
      v_due := v_due || array(
        select d.order_id
        from unnest(v_pools) p (pool_id)
        cross join lateral (
          select o.order_id from public.orders o
          where o.pool_id = p.pool_id and o.hold_until <= now() and o.ended_at is null and (o.grace_until <= now() or not exists (
            select from public.checkouts k where k.order_id = o.order_id and k.state in ('creating', 'open')
          ))
          order by o.hold_until
          offset v_offset limit case v_offset when 0 then v_share else v_left end
          for update skip locked
        ) d
        limit v_left
      );
    else
      v_due := v_due || array(
        select d.claim_id
        from unnest(v_pools) p (pool_id)
        cross join lateral (
          select c.claim_id from public.claims c
          where c.pool_id = p.pool_id and c.hold_until < now() and c.freed_at is null and c.end_as is null
            and c.state in ('queued', 'dead_letter')
          order by c.hold_until
          offset v_offset limit case v_offset when 0 then v_share else v_left end
          for update skip locked
        ) d
        limit v_left
      );
    end if;
    v_left := p_limit - cardinality(v_due);
  end loop;
  -- Where another session has locked some, the second look finds claims of the first again.
  return array(select distinct d from unnest(v_due) d);
end
$$;

-- Promise: the other claims of the orders of these claims whose hold is over too. Second call: the same. Locks: the claims; those that
-- another session has locked are skipped.
create function intake.others_of_orders(p_claim_ids uuid[]) returns uuid[]
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := intake.claims_of_orders(array(
    select distinct c.order_id from public.claims c where c.claim_id = any (p_claim_ids) and c.order_id is not null
  ));
begin
  return array(
    select c.claim_id from public.claims c
    where c.claim_id = any (v_claim_ids) and c.claim_id <> all (p_claim_ids) and c.hold_until < now() and c.freed_at is null
      and c.end_as is null and c.state in ('queued', 'dead_letter')
    for update skip locked
  );
end
$$;

-- Promise: those of the orders have ended that have no live checkout, or no grace left, and whose held claims the caller has locked,
-- all of them (p_held), with slots that are not locked; returns these claims, which the caller frees. Asked again under the lock: a
-- checkout may have begun since the order was found. Second call: none. Locks: the orders, which the caller has.
create function intake.end_orders(p_order_ids uuid[], p_held uuid[], p_locked_slots uuid[]) returns uuid[]
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_left uuid[] := array(
    select c.order_id from public.claims c
    where c.claim_id = any (intake.claims_of_orders(p_order_ids)) and c.state = 'held'
      and (c.claim_id <> all (p_held) or c.slot_id = any (p_locked_slots))
    union
    select o.order_id from public.orders o
    join public.checkouts k on k.order_id = o.order_id and k.state in ('creating', 'open')
    where o.order_id = any (p_order_ids) and o.grace_until > now()
  );
begin
  update public.orders o set ended_at = now() where o.order_id = any (p_order_ids) and o.order_id <> all (v_left);
  return array(select c.claim_id from public.claims c where c.claim_id = any (p_held) and c.order_id <> all (v_left));
end
$$;

-- Promise: up to p_limit claims and orders whose hold has run out end, as many of each pool (intake.lock_due), whatever their messages do
-- (wait, back off, are being validated, are dead letters). Those that no worker took end as expired: messages withdrawn, slots
-- back on sale. Those that one took are going to end (intake.begin_ends). The claims of an order end together, held ones as soon as
-- the order's session is closed or its grace is over. Two kinds keep their slots, without a hold: a dead
-- letter whose slot the ledger has sold to another (intake.is_sold_elsewhere), which a repair has to come before, and what a
-- worker of a pool that commits elsewhere took: its target may have it. Returns how many there were; fewer than p_limit: no more
-- is due. Raises SL015 not read committed. Second call: the next. Locks: as intake.give_back_claim; claims and messages that
-- another session has locked are skipped: such a message is being taken, and an order of such a claim stays whole. A claim whose slot
-- or pool another session has locked (intake.locked_slots) is going to end as well: finish_ends comes back to it, and the other
-- pools' holds do not wait for that session.
-- Definer: cron and service_role need no rights to the queue.
create function public.expire_holds(p_limit int default 1000) returns int
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  c_reason constant text := 'hold expired';
  v_orders uuid[];
  v_due uuid[];
  v_held uuid[];
  v_untaken uuid[];
  v_withdrawn uuid[];
  v_locked uuid[];
  v_count int;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  -- Neither kind waits for the other: half for orders, and what claims leave of the rest.
  v_orders := intake.lock_due('order', (p_limit + 1) / 2);
  v_due := intake.lock_due('hold', p_limit - cardinality(v_orders));
  if cardinality(v_orders) = (p_limit + 1) / 2 then
    v_orders := intake.lock_due('order', p_limit - cardinality(v_due));
  end if;
  if v_orders = '{}' and v_due = '{}' then
    return 0;
  end if;
  v_count := cardinality(v_due);
  v_due := v_due || intake.others_of_orders(v_due);
  v_held := array(
    select c.claim_id from public.claims c where c.claim_id = any (intake.claims_of_orders(v_orders)) and c.state = 'held'
    for update skip locked
  );
  v_locked := intake.locked_slots(v_due || v_held);
  v_held := intake.end_orders(v_orders, v_held, v_locked);
  with untaken as materialized (
    select q.msg_id, c.claim_id, c.slot_id
    from public.claims c
    join intake.untaken_messages q on q.msg_id = c.msg_id
    where c.claim_id = any (v_due) and c.state = 'queued'
    for update of q skip locked
  ),
  withdrawn as (
    delete from pgmq.q_intake_queue q using untaken u
    where q.msg_id = u.msg_id and u.slot_id <> all (v_locked) returning u.claim_id
  )
  select array(select u.claim_id from untaken u), array(select w.claim_id from withdrawn w) into v_untaken, v_withdrawn;
  update public.claims c
  set hold_until = null
  from pgmq.q_intake_dlq d
  where c.claim_id = any (v_due) and c.state = 'dead_letter' and d.msg_id = c.msg_id and intake.is_sold_elsewhere(d.message);
  update public.claims c
  set hold_until = null
  where c.claim_id = any (v_due) and c.claim_id <> all (v_untaken) and intake.commits_elsewhere(c.pool_id);
  perform intake.begin_ends(array(
    select c.claim_id from public.claims c
    where c.claim_id = any (v_due) and c.claim_id <> all (v_withdrawn) and c.hold_until is not null
  ), 'expired', c_reason);
  perform intake.free_claims(v_withdrawn || v_held, 'expired', c_reason);
  return v_count + (select count(distinct c.order_id) from public.claims c where c.claim_id = any (v_held));
end
$$;

-- Promise: no hold is due that can end. For cron; the Node scheduler calls the function. A procedure without settings of its
-- own, because it commits after each part: however many are due, none waits for the last, and no timeout undoes them all.
-- Small parts cost nothing: of 300,000 due holds a part of 1,000 took 0.1 to 0.2 s (5,200 to 9,000 a second), one of 5,000 took
-- 0.7 to 1.1 s (4,800 to 6,800 a second). A hold of another pool waits for at most two parts.
-- Second call: does nothing. Locks: those of expire_holds, one part at a time.
create procedure intake.expire_due_holds()
language plpgsql as $$
declare
  c_chunk constant int := 1000;
begin
  while public.expire_holds(c_chunk) = c_chunk loop
    commit;
  end loop;
end
$$;

-- How many slots of a large pool were free, where its mark stood and how many slots it had in all, when they were last counted,
-- and when they are to be counted again. Lost in a crash, and then counted anew.
create unlogged table intake.free_counts (
  pool_id text primary key,
  free bigint not null,
  low_order bigint not null,
  slots bigint not null,
  due_at timestamptz not null
);

-- How many slots of a pool with many orders were held, when they were last counted. As free_counts.
create unlogged table intake.held_counts (
  pool_id text primary key,
  held bigint not null,
  due_at timestamptz not null
);

-- Promise: when a large pool is counted again after a count from p_began to p_ended: after 10 seconds, or a hundred times as long as
-- it took, and after a minute at the latest. Second call: the same. Locks: none.
create function intake.next_count(p_began timestamptz, p_ended timestamptz) returns timestamptz
language sql immutable set search_path = '' as $$
  select p_ended + least(interval '1 minute', greatest(interval '10 seconds', 100 * (p_ended - p_began)));
$$;

-- Promise: how many slots of the pool are free. Up to p_look_at it looks at each, which is exact; beyond that it counts as seldom
-- as intake.next_count says: servers ask every two seconds, watched or not, and three million slots take about half a second.
-- In between it estimates: from the last count it takes away what the pool's mark has passed since, and adds the difference of
-- the pool's total (intake.pool_totals) since. A withdrawn slot that the mark has passed since, or that was not free at the
-- count, is taken away once too often until the next count. The answer is never below the p_look_at + 1 slots that it has seen.
-- It can exceed the capacity that the caller shows, which the caller may have read earlier, so the caller bounds it.
-- Second call: the same, until the next count. Locks: the pool's row of free_counts, when counting. A session that adds or
-- withdraws slots takes no lock for this: its change of the total is all that the estimate needs.
create function intake.free_slots(p_pool_id text, p_low_order bigint, p_look_at int) returns bigint
language plpgsql set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_began constant timestamptz := clock_timestamp();
  v_free bigint;
  v_estimate bigint;
begin
  select count(*) into v_free
  from (
    select from public.inventory_slots s
    where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
    limit p_look_at + 1
  ) seen;
  if v_free <= p_look_at then
    return v_free;
  end if;
  select f.free - greatest(0, p_low_order - f.low_order) + coalesce(t.slots, 0) - f.slots into v_estimate
  from intake.free_counts f
  left join intake.pool_totals t on t.pool_id = f.pool_id
  where f.pool_id = p_pool_id and f.due_at > v_began;
  if found then
    return greatest(v_free, v_estimate);
  end if;
  -- One statement, so that the count and the total are of the same moment.
  insert into intake.free_counts as f (pool_id, free, low_order, slots, due_at)
  select
    p_pool_id, count(*), p_low_order,
    coalesce((select t.slots from intake.pool_totals t where t.pool_id = p_pool_id), 0),
    intake.next_count(v_began, clock_timestamp())
  from public.inventory_slots s
  where s.pool_id = p_pool_id and s.status = 'AVAILABLE' and s.sale_order >= p_low_order
  on conflict (pool_id) do update set
    free = excluded.free, low_order = excluded.low_order, slots = excluded.slots, due_at = excluded.due_at
  returning f.free into v_free;
  return v_free;
end
$$;

-- Promise: what a buyer may know of a pool: open, not_open, closed or sold_out, and how many slots are left, exact up to
-- 2000 and never more than the capacity; details is what public.pool_details says. No row for an unknown pool.
-- Second call: the same. Locks: those of free_slots, or of a rebuild.
-- Definer: as get_claim. A server calls this once a second for each pool that a page shows, so a large pool is counted
-- seldom (intake.free_slots).
create function public.pool_status(p_pool_id text)
returns table (
  pool_id text, status text, capacity bigint, available bigint, opens_at timestamptz, closes_at timestamptz,
  max_per_user int, hold_sec int, require_auth boolean, allow_guests boolean, max_per_address int, challenge_difficulty int,
  confirm_by text, price bigint, currency text, max_quantity int, details jsonb
)
language plpgsql security definer set search_path = '' as $$
declare
  c_look_at constant int := 2000;
  v_pool intake.pool_gates := intake.open_pool(p_pool_id, true);
begin
  perform public.answer_in_cell();
  if v_pool.gate = 'unknown_pool' then
    return;
  end if;
  return query
  select
    p_pool_id,
    case
      when now() < c.opens_at and c.is_active then 'not_open'
      when v_pool.gate is null and free.slots = 0 then 'sold_out'
      else coalesce(v_pool.gate, 'open')
    end,
    coalesce(free.total, 0), free.slots, c.opens_at, c.closes_at, c.max_per_user, c.hold_sec,
    coalesce(c.require_auth, false), coalesce(c.allow_guests, false), c.max_per_address, c.challenge_difficulty,
    coalesce(c.confirm_by, 'auto'), c.price, c.currency, coalesce(c.max_quantity, 1), public.pool_details(p_pool_id)
  from (
    select case
      when v_pool.low_order is null then 0
      -- The total is read before: slots that were added since are not in it.
      else least(coalesce(t.slots, 0), intake.free_slots(p_pool_id, v_pool.low_order, c_look_at))
    end as slots, t.slots as total
    from (values (p_pool_id)) p (pool_id)
    left join intake.pool_totals t on t.pool_id = p.pool_id
  ) free
  left join public.engine_config c on c.pool_id = p_pool_id;
end
$$;
