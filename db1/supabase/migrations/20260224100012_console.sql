-- CONSOLE: what operators watch and change. Watching must not cost the doors anything, so a table that may be
-- large is counted at most every 10 seconds. After a long count the pause is a hundred times its length, but at most a minute
-- (intake.next_count). Between two counts, numbers are estimates.

-- Promise: how many rows a table has, as the statistics know it. Second call: the same or newer. Locks: none.
create function intake.estimated_rows(p_table regclass) returns bigint
language sql stable set search_path = '' as $$
  select case when s.n_live_tup > 0 then s.n_live_tup else greatest(c.reltuples, 0)::bigint end
  from pg_catalog.pg_class c
  join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
  where c.oid = p_table;
$$;

-- Promise: whether a table's file is so small that counting its rows takes a few milliseconds, whatever is dead in it.
-- Second call: the same. Locks: none.
create function intake.is_quickly_counted(p_table regclass) returns boolean
language sql stable set search_path = '' as $$
  select pg_catalog.pg_relation_size(p_table) <= 16 * 1024 * 1024;
$$;

-- Promise: how many messages are on the queue: counted while that is quick, else what the statistics say.
-- Second call: the same. Locks: none.
create function intake.queue_depth() returns bigint
language sql stable set search_path = '' as $$
  select case when intake.is_quickly_counted('pgmq.q_intake_queue') then (select count(*) from pgmq.q_intake_queue)
    else intake.estimated_rows('pgmq.q_intake_queue') end;
$$;

-- Promise: how many dead letters there are, as intake.queue_depth. Second call: the same. Locks: none.
create function intake.dead_letter_depth() returns bigint
language sql stable set search_path = '' as $$
  select case when intake.is_quickly_counted('pgmq.q_intake_dlq') then (select count(*) from pgmq.q_intake_dlq)
    else intake.estimated_rows('pgmq.q_intake_dlq') end;
$$;

-- Promise: how many messages of each pool are on the queue, from the oldest of each lane: about 1000 in all, and at least 10
-- a lane. Exact where that is all of a lane; else its length is told from how close its numbers lie at the head, and shared
-- among its pools as they are there. Second call: the same. Locks: none.
create function intake.messages_by_pool() returns table (pool_id text, messages numeric)
language plpgsql stable set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  c_look_at constant int := 1000;
  c_lane_min constant int := 10;
  v_lanes int[] := array(select l from intake.lanes() l);
  v_look_at int := greatest(c_lane_min, c_look_at / greatest(1, cardinality(v_lanes)));
begin
  return query
  with head as materialized (
    select l.lane, m.msg_id, m.pool_id
    from unnest(v_lanes) l (lane)
    cross join lateral (
      select q.msg_id, q.message ->> 'pool_id' as pool_id
      from pgmq.q_intake_queue q
      where q.msg_id >= l.lane::bigint << 40 and q.msg_id < (l.lane::bigint + 1) << 40
      order by q.msg_id
      limit v_look_at
    ) m
  ),
  lane as (
    select h.lane, count(*) as seen, min(h.msg_id) as first_id, max(h.msg_id) as last_id, (
      select q.msg_id from pgmq.q_intake_queue q
      where q.msg_id < (h.lane::bigint + 1) << 40 order by q.msg_id desc limit 1
    ) as end_id
    from head h group by h.lane
  )
  select h.pool_id, sum(1 + (l.end_id - l.last_id)::numeric * (l.seen - 1) / greatest(1, l.last_id - l.first_id) / l.seen)
  from head h
  join lane l on l.lane = h.lane
  group by h.pool_id;
end
$$;

-- Promise: how many slots of the pool are held for orders that are not paid. Up to p_look_at orders it looks at each, beyond that it
-- counts as seldom as intake.free_slots does. Second call: the same. Locks: the pool's row of held_counts, when counting.
create function intake.held_slots(p_pool_id text, p_look_at int) returns bigint
language plpgsql set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_began constant timestamptz := clock_timestamp();
  v_orders int;
  v_held bigint;
begin
  select count(*), coalesce(sum(seen.seats), 0) into v_orders, v_held
  from (
    select o.seats from public.orders o
    where o.pool_id = p_pool_id and o.hold_until is not null and o.ended_at is null limit p_look_at + 1
  ) seen;
  if v_orders <= p_look_at then
    return v_held;
  end if;
  select h.held into v_held from intake.held_counts h
  where h.pool_id = p_pool_id and h.due_at > clock_timestamp();
  if found then
    return v_held;
  end if;
  insert into intake.held_counts as h (pool_id, held, due_at)
  select p_pool_id, sum(o.seats), intake.next_count(v_began, clock_timestamp()) from public.orders o
  where o.pool_id = p_pool_id and o.hold_until is not null and o.ended_at is null
  on conflict (pool_id) do update set held = excluded.held, due_at = excluded.due_at
  returning h.held into v_held;
  return v_held;
end
$$;

-- Promise: the slots of up to p_limit pools, those for sale first, or of the one that is named: capacity exact, free as
-- intake.free_slots and at most the capacity, reserved from the orders that wait for their payment (intake.held_slots), the pools of
-- the oldest messages of each lane (intake.messages_by_pool) and of the oldest dead letters (exact up to 1000 each), and never below
-- 0, consumed what is left, waiting its messages on the queue. A pool whose cache is lost has nulls until a claim rebuilds it:
-- watching does not. Second call: the same. Locks: those of free_slots and held_slots.
create function intake.pool_levels(p_dlq_depth bigint, p_limit int, p_pool_id text default null)
returns table (pool_id text, capacity bigint, available bigint, reserved bigint, consumed bigint, waiting bigint)
language plpgsql set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  -- Slots to look at in all, about 10 ms; a pool gets its share of it, and no more than makes sense to draw.
  c_looks constant int := 20000;
  v_look_at int := (
    select least(2000, c_looks / greatest(1, count(*))) from intake.pool_marks m
    where not m.sold_out and (p_pool_id is null or m.pool_id = p_pool_id)
  );
begin
  return query
  with held as materialized (
    select m.pool_id, m.messages as weight, true as is_message from intake.messages_by_pool() m
    union all
    select m.pool_id, p_dlq_depth::numeric / count(*) over (), false
    from (select d.message ->> 'pool_id' as pool_id from pgmq.q_intake_dlq d order by d.msg_id limit 1000) m
  ),
  pool as materialized (
    select coalesce(c.pool_id, t.pool_id) as pool_id, coalesce(t.slots, 0) as slots, m.low_order,
      case
        when coalesce(t.slots, 0) = 0 or m.sold_out then 0
        -- Slots that were added since the total was read are not in it.
        when m.pool_id is not null then least(t.slots, intake.free_slots(m.pool_id, m.low_order, v_look_at))
      end as free
    from public.engine_config c
    full join intake.pool_totals t on t.pool_id = c.pool_id
    left join intake.pool_marks m on m.pool_id = t.pool_id
    where p_pool_id is null or coalesce(c.pool_id, t.pool_id) = p_pool_id
    order by coalesce(c.is_active, true) desc, 1
    limit p_limit
  )
  select p.pool_id, p.slots, p.free, r.reserved, p.slots - p.free - r.reserved, r.waiting
  from pool p
  left join lateral (
    select least(p.slots - p.free, coalesce(round(sum(h.weight)), 0)::bigint + intake.held_slots(p.pool_id, v_look_at)) as reserved,
      coalesce(round(sum(h.weight) filter (where h.is_message)), 0)::bigint as waiting
    from held h where h.pool_id = p.pool_id
  ) r on p.free is not null;
end
$$;

-- Promise: one look at the intake: enqueued (messages ever put on the queue, from its sequence: it never lags, and also
-- counts replays, moves to another lane and what was rolled back), queue_depth, oldest_msg_sec (of the lanes' first messages
-- the oldest), dlq_depth, inbox (intake.inbox_level), orders (intake.order_level), the levels of up to 50 pools, and how
-- many connections bridge workers hold. announced_pools names those of these pools that are open or have a time at which they
-- open: pages of metrics show no other.
-- Made to be asked once a second. Second call: the same. Locks: those of intake.free_slots.
-- Definer, as all that follow: service_role needs no rights to queue and tables.
create function public.live_sample() returns jsonb
language plpgsql security definer set search_path = '' as $$
declare
  c_pools constant int := 50;
  v_dlq_depth bigint := intake.dead_letter_depth();
  v_pools jsonb := (
    select coalesce(jsonb_agg(l order by l.pool_id), '[]')
    from intake.pool_levels(v_dlq_depth, c_pools) l
  );
begin
  return jsonb_build_object(
    'enqueued', (select case when s.is_called then s.last_value else 0 end from pgmq.q_intake_queue_msg_id_seq s),
    'queue_depth', intake.queue_depth(),
    'oldest_msg_sec', (
      select greatest(0, round(extract(epoch from clock_timestamp() - q.enqueued_at), 1))
      from intake.lanes() l (lane)
      cross join lateral (
        select m.enqueued_at from pgmq.q_intake_queue m where m.msg_id >= l.lane::bigint << 40 order by m.msg_id limit 1
      ) q
      order by q.enqueued_at limit 1
    ),
    'dlq_depth', v_dlq_depth,
    'inbox', intake.inbox_level(),
    'orders', intake.order_level(),
    'pools', v_pools,
    'announced_pools', (
      select coalesce(jsonb_agg(p.pool_id order by p.pool_id), '[]')
      from jsonb_to_recordset(v_pools) p (pool_id text)
      left join public.engine_config c on c.pool_id = p.pool_id
      where c.pool_id is null or c.opens_at is not null or (c.is_active and (c.closes_at is null or now() < c.closes_at))
    ),
    -- The Edge Function counts as one: it is connected to PostgREST alone.
    'bridge_workers', intake.is_drained()::int + (
      select count(*) from pg_catalog.pg_stat_activity s
      where s.application_name = 'sluice-worker' and s.datname = current_database()
    )
  );
end
$$;

create type intake.pool_view as (
  pool_id text,
  status text,
  capacity bigint,
  available bigint,
  reserved bigint,
  consumed bigint,
  is_active boolean,
  opens_at timestamptz,
  closes_at timestamptz,
  max_per_user int,
  hold_sec int,
  require_auth boolean,
  allow_guests boolean,
  max_per_address int,
  challenge_difficulty int,
  commit_rate_per_sec int,
  batch_size int,
  visibility_timeout_sec int,
  max_retries int,
  validation_webhook_url text,
  commit_rpc_name text,
  commit_webhook_url text,
  confirm_by text,
  price bigint,
  currency text,
  payment_tenant text,
  payment_livemode boolean,
  max_quantity int,
  expire_grace_sec int,
  refund_by text
);

-- Promise: pools with their rules and levels, by name, p_limit after p_after and behind the first p_offset, or the one that is named. A
-- pool with slots and no row of engine_config has the defaults. Second call: the same. Locks: those of intake.free_slots.
create function public.pool_list(
  p_pool_id text default null, p_after text default '', p_limit int default 100, p_offset int default 0
)
returns setof intake.pool_view
language plpgsql security definer set search_path = '' as $$
begin
  return query
  select
    l.pool_id,
    case
      when not c.is_active or now() >= c.closes_at then 'closed'
      when now() < c.opens_at then 'not_open'
      when l.available = 0 then 'sold_out'
      else 'open'
    end,
    l.capacity, l.available, l.reserved, l.consumed,
    coalesce(c.is_active, true), c.opens_at, c.closes_at, c.max_per_user, c.hold_sec, coalesce(c.require_auth, false),
    coalesce(c.allow_guests, false), c.max_per_address, c.challenge_difficulty, c.commit_rate_per_sec, coalesce(c.batch_size, d.batch_size),
    coalesce(c.visibility_timeout_sec, d.visibility_timeout_sec), coalesce(c.max_retries, d.max_retries),
    c.validation_webhook_url, coalesce(c.commit_rpc_name, d.commit_rpc_name), c.commit_webhook_url,
    coalesce(c.confirm_by, 'auto'), c.price, c.currency, c.payment_tenant, coalesce(c.payment_livemode, true),
    coalesce(c.max_quantity, 1), coalesce(c.expire_grace_sec, 60), coalesce(c.refund_by, 'sluice')
  from intake.pool_levels(intake.dead_letter_depth(), null, p_pool_id) l
  cross join intake.default_rules d
  left join public.engine_config c on c.pool_id = l.pool_id
  where l.pool_id > p_after
  order by l.pool_id
  limit p_limit offset p_offset;
end
$$;

-- What operators asked for under a request_id, so that asking again after a lost answer does nothing twice. As many rows as
-- such requests: it grows like the audit log.
create table intake.pool_requests (
  pool_id text not null,
  request_id public.given_id not null,
  slots int not null,
  at timestamptz not null default now(),
  primary key (pool_id, request_id)
);

-- Promise: true the first time that this is asked for, and always without a request_id. Raises SL007 where the request_id
-- was used for another number of slots. Second call: false. Locks: the request, until the end of the transaction: a session
-- that asks the same meanwhile waits for it.
create function intake.is_first_asked(p_pool_id text, p_request_id text, p_slots int) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_slots int;
begin
  if p_request_id is null then
    return true;
  end if;
  insert into intake.pool_requests (pool_id, request_id, slots) values (p_pool_id, p_request_id, p_slots)
  on conflict do nothing;
  if found then
    return true;
  end if;
  select r.slots into v_slots from intake.pool_requests r where r.pool_id = p_pool_id and r.request_id = p_request_id;
  if v_slots <> p_slots then
    raise exception 'this request_id asked for % slots before', v_slots using errcode = 'SL007';
  end if;
  return false;
exception
  when check_violation or not_null_violation then
    raise exception 'a request has an id of 1 to 200 characters and a number of slots' using errcode = 'SL001';
end
$$;

-- Promise: p_slots new slots of the pool, on sale, in this transaction, with these labels where they are given. Raises SL001 for
-- no number of slots, and for another number of labels. Second call: as many again. Locks: those of intake.slots_added. In chunks:
-- the trigger keeps what one statement added in memory.
create function intake.add_slots(p_pool_id text, p_slots int, p_labels text[] default null) returns void
language plpgsql set search_path = '' as $$
declare
  c_chunk constant int := 50000;
  c_most constant int := 1000000;
begin
  if (p_slots between 0 and c_most) is not true then
    raise exception 'slots must be between 0 and %', c_most using errcode = 'SL001';
  elsif cardinality(p_labels) <> p_slots then
    raise exception '% labels for % slots', cardinality(p_labels), p_slots using errcode = 'SL001';
  end if;
  for v_from in 1 .. p_slots by c_chunk loop
    insert into public.inventory_slots (pool_id, label)
    select p_pool_id, p_labels[n] from generate_series(v_from, least(v_from + c_chunk - 1, p_slots)) n;
  end loop;
  -- New slots make the last count of the free ones wrong.
  delete from intake.free_counts f where f.pool_id = p_pool_id and p_slots > 0;
end
$$;

-- Promise: the pool's row of engine_config with what p_rules names (any of its columns but pool_id and lane; null is "no
-- rule"), and what those columns were before. Raises SL001 for an unknown name or a value that the table refuses.
-- Second call: the same. Locks: the row.
create function intake.set_rules(p_pool_id text, p_rules jsonb) returns jsonb
language plpgsql set search_path = '' as $$
declare
  v_old public.engine_config;
  v_new public.engine_config;
  v_unknown text;
begin
  select c.* into v_old from public.engine_config c where c.pool_id = p_pool_id for update;
  select k into v_unknown from jsonb_object_keys(p_rules) k where k in ('pool_id', 'lane') or not to_jsonb(v_old) ? k limit 1;
  if v_unknown is not null then
    raise exception 'a pool has no rule "%"', v_unknown using errcode = 'SL001';
  end if;
  v_new := jsonb_populate_record(v_old, p_rules);
  update public.engine_config c
  set batch_size = v_new.batch_size, visibility_timeout_sec = v_new.visibility_timeout_sec,
    max_retries = v_new.max_retries, is_active = v_new.is_active,
    validation_webhook_url = v_new.validation_webhook_url, commit_rpc_name = v_new.commit_rpc_name,
    commit_webhook_url = v_new.commit_webhook_url, max_per_user = v_new.max_per_user, hold_sec = v_new.hold_sec,
    opens_at = v_new.opens_at, closes_at = v_new.closes_at, require_auth = v_new.require_auth,
    allow_guests = v_new.allow_guests, max_per_address = v_new.max_per_address,
    challenge_difficulty = v_new.challenge_difficulty, commit_rate_per_sec = v_new.commit_rate_per_sec,
    confirm_by = v_new.confirm_by, price = v_new.price, currency = v_new.currency, payment_tenant = v_new.payment_tenant,
    payment_livemode = v_new.payment_livemode, max_quantity = v_new.max_quantity, expire_grace_sec = v_new.expire_grace_sec,
    refund_by = v_new.refund_by
  where c.pool_id = p_pool_id and to_jsonb(v_new) <> to_jsonb(v_old);
  return (select coalesce(jsonb_object_agg(k, to_jsonb(v_old) -> k), '{}') from jsonb_object_keys(p_rules) k);
exception
  when check_violation or not_null_violation or invalid_text_representation or invalid_datetime_format
    or datetime_field_overflow or numeric_value_out_of_range then
    raise exception 'a rule of the pool is refused: %', sqlerrm using errcode = 'SL001';
end
$$;

-- Promise: a new pool with these rules and p_slots slots on sale, all in one transaction, with one audit row. Raises SL001
-- for an invalid name, rule or number of slots, SL014 if the pool exists, by its rules or by its slots. Second call: SL014,
-- or with the same p_request_id the pool as it is now. Locks: the request, the pool's row, those of slots_added.
create function public.pool_create(
  p_pool_id text,
  p_slots int,
  p_rules jsonb,
  p_actor text,
  p_reason text default null,
  p_request_id text default null
)
returns setof intake.pool_view
language plpgsql security definer set search_path = '' as $$
begin
  if (length(p_pool_id) between 1 and 200 and jsonb_typeof(p_rules) = 'object') is not true then
    raise exception 'a pool has a name of 1 to 200 characters, and rules' using errcode = 'SL001';
  elsif not intake.is_first_asked(p_pool_id, p_request_id, p_slots) then
    return query select * from public.pool_list(p_pool_id);
    return;
  end if;
  begin
    insert into public.engine_config (pool_id) values (p_pool_id) on conflict do nothing;
  exception
    when check_violation then
      raise exception 'no name for a pool: %', sqlerrm using errcode = 'SL001';
  end;
  if not found or exists (select from intake.pool_totals t where t.pool_id = p_pool_id) then
    raise exception 'there is a pool %', p_pool_id using errcode = 'SL014';
  end if;
  perform intake.set_rules(p_pool_id, p_rules);
  perform intake.add_slots(p_pool_id, p_slots);
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'pool_create', 'pool ' || p_pool_id, p_reason,
    jsonb_build_object('slots', p_slots, 'rules', p_rules));
  return query select * from public.pool_list(p_pool_id);
end
$$;

-- Promise: the pool has these rules and p_add_slots slots more, with p_labels if given, in one transaction, with one audit row
-- that holds the rules as they were before. Raises SL001 as pool_create, SL002 if the pool does not exist, SL007 when
-- p_request_id asked for another number of slots. Second call: with the same p_request_id it changes nothing, without one it
-- adds as many slots again; a call that changes nothing writes no audit row. Locks: as pool_create.
create function public.pool_change(
  p_pool_id text,
  p_rules jsonb,
  p_add_slots int,
  p_actor text,
  p_reason text default null,
  p_request_id text default null,
  p_labels text[] default null
)
returns setof intake.pool_view
language plpgsql security definer set search_path = '' as $$
declare
  v_before jsonb;
  v_after jsonb;
begin
  if jsonb_typeof(p_rules) is distinct from 'object' then
    raise exception 'the rules of a pool are an object' using errcode = 'SL001';
  end if;
  -- A pool that has only slots gets its row here, or from a call that was faster. A name with neither row nor slots is unknown.
  insert into public.engine_config (pool_id)
  select t.pool_id from intake.pool_totals t where t.pool_id = p_pool_id
  on conflict do nothing;
  if not exists (select from public.engine_config c where c.pool_id = p_pool_id) then
    raise exception 'no pool %', p_pool_id using errcode = 'SL002';
  end if;
  if not intake.is_first_asked(p_pool_id, p_request_id, p_add_slots) then
    return query select * from public.pool_list(p_pool_id);
    return;
  end if;
  -- Rules before slots: rules may lock messages (intake.validation_begins), and a session that holds messages waits for marks.
  v_before := intake.set_rules(p_pool_id, p_rules);
  perform intake.add_slots(p_pool_id, p_add_slots, p_labels);
  select coalesce(jsonb_object_agg(k, to_jsonb(c) -> k), '{}') into v_after
  from public.engine_config c cross join jsonb_object_keys(p_rules) k where c.pool_id = p_pool_id;
  if v_after <> v_before or p_add_slots > 0 then
    insert into audit.audit_logs (actor, action, subject, reason, details)
    values (p_actor, 'pool_change', 'pool ' || p_pool_id, p_reason,
      jsonb_build_object('before', v_before, 'after', v_after, 'add_slots', p_add_slots));
  end if;
  return query select * from public.pool_list(p_pool_id);
end
$$;

-- Promise: p_limit claims of those that match what is not null, behind the first p_offset, newest first: in the order of their ids,
-- which begin with the time, from p_after on. (A claim made of a message by hand has the slot's id and stands where that one does.)
-- p_claim_id is a whole id, or its beginning (intake.uuid_range). By user, claim or request id it asks an index; by pool or state
-- alone it walks the claims until it has a page. Second call: the same, and what is new. Locks: none.
create function public.claim_search(
  p_claim_id text default null,
  p_user_id text default null,
  p_request_id text default null,
  p_pool_id text default null,
  p_state text default null,
  p_after uuid default null,
  p_limit int default 100,
  p_offset int default 0
)
returns setof intake.claim_view
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_ids record := intake.uuid_range(p_claim_id);
  v_keys record := intake.request_keys(p_request_id);
  -- As the column has it: the planner knows how rare a state is, and not how rare its text is.
  v_state public.claim_state := (select s from unnest(enum_range(null::public.claim_state)) s where s::text = p_state);
begin
  return query
  with page as materialized (
    select c.*, case when c.state in ('queued', 'validated') then (c.msg_id >> 40)::int end as lane
    from public.claims c
    where (p_claim_id is null or c.claim_id between v_ids.first and v_ids.last)
      and (p_user_id is null or c.user_id = p_user_id)
      and (p_request_id is null or c.request_id = p_request_id and c.request_key between v_keys.first and v_keys.last)
      and (p_pool_id is null or c.pool_id = p_pool_id)
      and (p_state is null or c.state = v_state)
      and (p_after is null or c.claim_id < p_after)
    order by c.claim_id desc
    limit p_limit offset p_offset
  ),
  head as materialized (
    select l.lane, h.msg_ids, h.taken
    from (select distinct p.lane from page p where p.lane is not null) l
    cross join lateral intake.queue_head(l.lane) h
  )
  select c.claim_id, c.slot_id, c.pool_id, c.user_id::text, c.request_id::text, c.state::text, c.verified,
    c.claimed_at, coalesce(c.hold_until, (g.view ->> 'hold_until')::timestamptz), c.freed_at, c.end_reason,
    case when h.lane is not null then intake.ahead_of(c.msg_id, h.msg_ids, h.taken) end, c.end_as is not null,
    null::boolean, m.label::text, g.view
  from page c
  left join head h on h.lane = c.lane
  left join public.slot_manifest m on m.slot_id = c.slot_id
  left join lateral (select intake.order_view(c.order_id) as view where c.order_id is not null) g on true
  order by c.claim_id desc;
end
$$;

-- Promise: what the intake knows of the way of a claim, in the order it happened as far as that is known (at is null where
-- it is not): claimed, queued, validated, dead_letter, what operators did, that it is ending, and its end. The ledger knows the rest.
-- Second call: the same. Locks: none.
create function public.claim_timeline(p_claim_id uuid) returns table (at timestamptz, what text, detail jsonb)
language sql stable security definer set search_path = '' as $$
  select e.at, e.what, e.detail
  from (
    select 1 as step, c.claimed_at as at, 'claimed' as what, jsonb_build_object(
      'pool_id', c.pool_id, 'resource_id', c.slot_id, 'request_id', c.request_id, 'verified', c.verified,
      'hold_until', c.hold_until) as detail
    from public.claims c where c.claim_id = p_claim_id
    union all
    select 2, q.enqueued_at, 'queued', jsonb_build_object(
      'msg_id', q.msg_id, 'deliveries', q.read_ct, 'attempts', intake.count_in(q.message, 'tried'),
      'last_error', q.message -> 'last_error', 'replayed_from', q.message -> 'replayed_from',
      'next_attempt_at', nullif(q.vt, 'infinity'), 'is_held', q.read_ct > 0 and q.vt > clock_timestamp())
    from public.claims c
    join pgmq.q_intake_queue q on q.msg_id = c.msg_id
    where c.claim_id = p_claim_id and c.state in ('queued', 'validated')
    union all
    select 3, null, 'validated', '{}'
    from public.claims c where c.claim_id = p_claim_id and c.state = 'validated'
    union all
    select 4, d.enqueued_at, 'dead_letter', jsonb_build_object(
      'msg_id', d.msg_id, 'reason', coalesce(d.message ->> 'reason', 'max_retries'),
      'last_error', d.message -> 'last_error', 'final_read_ct', d.message -> 'final_read_ct')
    from public.claims c
    join pgmq.q_intake_dlq d on d.msg_id = c.msg_id
    where c.claim_id = p_claim_id and c.state = 'dead_letter'
    union all
    select 5, a.at, a.action, jsonb_build_object(
      'actor', a.actor, 'reason', a.reason, 'outcome', a.details -> 'outcome', 'subject', a.subject)
    from audit.audit_logs a
    where a.details ->> 'claim_id' = p_claim_id::text or a.details ->> 'ended_claim_id' = p_claim_id::text
    union all
    select 6, null, 'ending', jsonb_build_object('as', c.end_as, 'reason', c.end_reason)
    from public.claims c where c.claim_id = p_claim_id and c.end_as is not null
    union all
    select 7, c.freed_at, c.state::text, jsonb_build_object('reason', c.end_reason)
    from public.claims c where c.claim_id = p_claim_id and c.freed_at is not null
  ) e
  order by coalesce(e.at, 'infinity'), e.step;
$$;

-- Promise: an operator releases any user's claim, as intake.give_back_claim says, with an audit row in the same transaction.
-- The reason stays there: how a claim ended is for its buyer to read. Raises as release_own_claim does.
-- Second call: the released or ending claim again, and no other audit row. Locks: those of lock_group → those of give_back_claim.
create function public.release_claim_as_operator(p_claim_id uuid, p_actor text, p_reason text default null)
returns setof intake.claim_view
language plpgsql security definer set search_path = '' as $$
declare
  v_is_kept boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  select c.freed_at is null and c.end_as is null into v_is_kept from intake.lock_group(p_claim_id) c;
  return query select * from intake.give_back_claim(p_claim_id, null, 'released by an operator');
  if v_is_kept then
    insert into audit.audit_logs (actor, action, subject, reason, details)
    select p_actor, 'claim_release', 'claim ' || p_claim_id, p_reason, jsonb_build_object(
      'outcome', case when c.end_as is null then 'released' else 'ending' end, 'claim_id', c.claim_id, 'pool_id', c.pool_id, 'user_id', c.user_id, 'resource_id', c.slot_id)
    from public.claims c where c.claim_id = p_claim_id;
  end if;
end
$$;

-- Promise: what a doctor asks of this database: version, clock, extensions, the last run of each cron job, and who of ours
-- is connected. is_stand_in says that the Node scheduler has to run the jobs, is_served that the Edge Function does the workers'
-- work. Second call: the same. Locks: none.
create function public.intake_health() returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object(
    'version', current_setting('server_version'), 'now_ms', round(extract(epoch from clock_timestamp()) * 1000),
    'extensions', (
      select coalesce(jsonb_object_agg(e.extname, e.extversion), '{}') from pg_catalog.pg_extension e
      where e.extname in ('pgmq', 'pg_cron', 'pg_net')
    ),
    'is_stand_in', (select d.run_jobs from public.scheduler_duties() d),
    'is_served', intake.is_drained(),
    'jobs', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'name', coalesce(j.jobname, j.jobid::text), 'schedule', j.schedule, 'is_active', j.active,
        'last_status', r.status, 'last_start_ms', round(extract(epoch from r.start_time) * 1000),
        'last_message', r.return_message
      ) order by j.jobname), '[]')
      from cron.job j
      left join lateral (
        select d.status, d.start_time, d.return_message
        from cron.job_run_details d where d.jobid = j.jobid order by d.runid desc limit 1
      ) r on true
    ),
    'connections', (
      select coalesce(jsonb_object_agg(a.name, a.connections), '{}') from (
        select s.application_name as name, count(*) as connections from pg_catalog.pg_stat_activity s
        where s.application_name like 'sluice-%' and s.datname = current_database() group by 1
      ) a
    )
  );
$$;

-- Sessions of the console that were signed out before their end. The id alone opens nothing: the cookie is signed.
create table intake.ended_sessions (
  session_id text primary key,
  ends_at timestamptz not null,
  constraint session_id_is_short check (length(session_id) between 1 and 64)
);

-- Promise: the session is ended for every server, and those that would have ended by now are forgotten. Second call: the
-- same. Locks: the rows of the sessions, one by one.
create function public.session_end(p_session_id text, p_ends_at timestamptz) returns void
language sql security definer set search_path = '' as $$
  delete from intake.ended_sessions s where s.ends_at < clock_timestamp();
  insert into intake.ended_sessions (session_id, ends_at) values (p_session_id, p_ends_at) on conflict do nothing;
$$;

-- Promise: the sessions that were signed out and would otherwise still be good. Second call: the same. Locks: none.
create function public.sessions_ended() returns table (session_id text, ends_ms bigint)
language sql stable security definer set search_path = '' as $$
  select s.session_id, (extract(epoch from s.ends_at) * 1000)::bigint
  from intake.ended_sessions s
  where s.ends_at >= clock_timestamp();
$$;
