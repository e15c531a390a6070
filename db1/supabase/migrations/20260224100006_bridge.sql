-- BRIDGE: how messages leave the queue. A worker takes messages lane by lane under a lease, decides, and finishes them.
-- Every finish names (msg_id, read_ct): a worker whose lease was taken over touches nothing. read_ct is never lowered.
-- What a delivery counts for is written when it is finished, in the message itself, and a message that arrives at its first
-- delivery is never written twice:
--   seen     the read_ct of the last delivery that a worker finished
--   tried    how many deliveries were finished as failed
--   untried  [msg_id, read_ct] while every delivery so far was handed back untried (bridge_finish)
-- A delivery that no worker finished is a takeover: its worker died, or lost its lease. The takeovers since the last finish
-- are read_ct - 1 - seen. Earlier ones are not counted: the worker that finished the message survived it, so the message
-- does not kill workers. Webhook events follow the same rule.

-- Promise: a count from a message, 0 if the message has none. Clamped, because any client may have written the JSON, and a
-- number that does not fit an int would stop every take. Second call: the same. Locks: none.
create function intake.count_in(p_message jsonb, p_key text) returns int
language sql immutable parallel safe set search_path = '' as $$
  select case
    when jsonb_typeof(p_message -> p_key) = 'number'
      then least(greatest((p_message ->> p_key)::numeric, 0), 1000000000)::int
    else 0
  end;
$$;

-- Promise: how many workers in a row have not finished the message before its delivery p_read_ct. What seen says of
-- deliveries that were not yet is not believed: no text in a message may hide that it kills its workers.
-- Second call: the same. Locks: none.
create function intake.takeovers(p_message jsonb, p_read_ct int) returns int
language sql immutable parallel safe set search_path = '' as $$
  select p_read_ct - 1 - case when s.seen < p_read_ct then s.seen else 0 end
  from (select intake.count_in(p_message, 'seen') as seen) s;
$$;

-- How many messages of a pool with a ceiling may be taken now: a bucket that fills with time. Lost in a crash, and then
-- full again: a second's worth too many once.
create unlogged table intake.pool_allowances (
  pool_id text primary key,
  tokens double precision not null,
  filled_at timestamptz not null
);

-- Promise: the configuration of those of the pools that exist; a pool with slots and no row has the defaults. A pool with
-- hooks gets the hosts that operators allow now. Second call: the same. Locks: none.
-- Definer, as all the public ones that follow: service_role needs no rights to queue and tables.
create function public.bridge_config(p_pool_ids text[])
returns table (
  pool_id text, max_retries int, visibility_timeout_sec int, validation_webhook_url text, commit_rpc_name text,
  commit_webhook_url text, commit_rate_per_sec int, allowed_hosts text[]
)
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
begin
  return query
  select p.pool_id, coalesce(c.max_retries, d.max_retries),
    coalesce(c.visibility_timeout_sec, d.visibility_timeout_sec), c.validation_webhook_url,
    coalesce(c.commit_rpc_name, d.commit_rpc_name), c.commit_webhook_url, c.commit_rate_per_sec,
    case
      when c.validation_webhook_url is not null or c.commit_webhook_url is not null
        then array(select a.host from intake.hook_allowed_hosts a)
      else '{}'
    end
  from (select distinct unnest(p_pool_ids) as pool_id) p
  cross join intake.default_rules d
  left join public.engine_config c on c.pool_id = p.pool_id
  where c.pool_id is not null or exists (select from intake.pool_totals t where t.pool_id = p.pool_id);
end
$$;

-- Promise: the lanes that are not empty, each once, in their order. It steps from lane to lane through the primary key, so
-- its cost is that of the lanes and not of the messages. Second call: the same. Locks: none.
create function intake.lanes() returns setof int
language plpgsql stable set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
  with recursive step as (
    (select q.msg_id >> 40 as lane from pgmq.q_intake_queue q order by q.msg_id limit 1)
    union all
    select (
      select q.msg_id >> 40 from pgmq.q_intake_queue q where q.msg_id >= (s.lane + 1) << 40 order by q.msg_id limit 1
    )
    from step s where s.lane is not null
  )
  select s.lane::int from step s where s.lane is not null;
end
$$;

-- Promise: the lanes that are not empty, with the rules of each configured pool of the lane. Lane 0, and a lane whose pool
-- was deleted, have no pool_id and the default rules. Beyond 8191 pools a lane has several rows. Second call: the same.
-- Locks: none.
create function public.bridge_lanes()
returns table (
  lane int, pool_id text, max_retries int, visibility_timeout_sec int, validation_webhook_url text,
  commit_rpc_name text, commit_webhook_url text, commit_rate_per_sec int
)
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  select l.lane, c.pool_id::text, coalesce(c.max_retries, d.max_retries),
    coalesce(c.visibility_timeout_sec, d.visibility_timeout_sec), c.validation_webhook_url,
    coalesce(c.commit_rpc_name, d.commit_rpc_name), c.commit_webhook_url, c.commit_rate_per_sec
  from intake.lanes() l (lane)
  cross join intake.default_rules d
  left join public.engine_config c on c.lane = l.lane
  order by l.lane, c.pool_id;
end
$$;

-- Promise: the key of the advisory lock between workers that take a pool's messages and the operator's transaction that
-- switches on its validation; the same for the same pool. Pools share 256 keys: each key that a take holds is a place in
-- the server's lock table.
-- Second call: same value. Locks: none.
create function intake.validation_lock_key(p_pool_id text) returns bigint
language sql immutable parallel safe set search_path = '' as $$
  select pg_catalog.hashtextextended('sluice validation', 0) + (pg_catalog.hashtext(p_pool_id) & 255);
$$;

-- Promise: how many messages of a pool with this ceiling may be taken now; 0 while another take has its bucket. Nothing is
-- spent yet (intake.within_room). Second call: the same, and what has come in since.
-- Locks: the pool's bucket. It waits only for another take that makes the very first bucket of the pool.
create function intake.tokens_of(p_pool_id text, p_rate int) returns int
language plpgsql set search_path = '' as $$
declare
  v_bucket intake.pool_allowances;
begin
  select a.* into v_bucket from intake.pool_allowances a where a.pool_id = p_pool_id for update skip locked;
  if found then
    return floor(greatest(0, least(p_rate, v_bucket.tokens
      + p_rate * greatest(0, extract(epoch from clock_timestamp() - v_bucket.filled_at)))));
  elsif exists (select from intake.pool_allowances a where a.pool_id = p_pool_id) then
    -- Another take has it. The insert below would wait for that one.
    return 0;
  end if;
  insert into intake.pool_allowances (pool_id, tokens, filled_at) values (p_pool_id, p_rate, clock_timestamp())
  on conflict do nothing;
  return case when found then p_rate else 0 end;
end
$$;

-- Promise: what may be taken of these lanes now. lanes and wanted: those with room, each once, and how much; of a lane that
-- was named twice the larger number counts, and null or 0 counts for nothing. pool_ids, pool_lanes and rooms: the pools of all
-- these lanes with their own room. A pool that begins to validate has no room (see bridge_take), and a pool with a ceiling has
-- at most what is in its bucket; is_metered says that there is such a pool. Asked before any message is looked at, so that a
-- take does not read the backlog of a pool without room.
-- Second call: the same. Locks: the pools' validation_lock_key, shared, and buckets, by name; it waits for neither.
create function intake.room_in_lanes(
  p_lanes int[], p_wanted int[],
  out lanes int[], out wanted int[], out pool_ids text[], out pool_lanes int[], out rooms int[], out is_metered boolean
)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  with asked as (
    select a.lane, max(a.wanted) as wanted
    from unnest(p_lanes, p_wanted) a (lane, wanted)
    -- What an id can hold: a larger number, moved up, would be another lane.
    where a.lane between -8388608 and 8388607 and a.wanted > 0
    group by a.lane
  ),
  pool as materialized (
    select a.lane, a.wanted, c.pool_id, c.commit_rate_per_sec as rate
    from asked a
    left join public.engine_config c on c.lane = a.lane
    order by c.pool_id
  ),
  opened as materialized (
    select p.*, least(p.wanted, case
      when p.pool_id is null then p.wanted
      when not pg_catalog.pg_try_advisory_xact_lock_shared(intake.validation_lock_key(p.pool_id)) then 0
      when p.rate is null then p.wanted
      else intake.tokens_of(p.pool_id, p.rate)
    end) as room
    from pool p
  ),
  lane as (
    select o.lane, least(max(o.wanted), sum(o.room))::int as wanted from opened o group by o.lane
  )
  select array(select l.lane from lane l where l.wanted > 0 order by l.lane),
    array(select l.wanted from lane l where l.wanted > 0 order by l.lane),
    array_agg(o.pool_id::text), array_agg(o.lane), array_agg(o.room), coalesce(bool_or(o.rate is not null), false)
  into lanes, wanted, pool_ids, pool_lanes, rooms, is_metered
  from opened o;
end
$$;

-- Promise: up to as many messages of each lane as are wanted, oldest first, that no worker holds, locked, with their pools.
-- None of the pools in p_left_out. No suspect, which is a message that the coming delivery would take over for the second
-- time: it may be what kills its workers, and is taken alone (intake.pick_suspect). Second call: the same.
-- Locks: the messages; it waits for none.
create function intake.pick_messages(
  p_lanes int[], p_wanted int[], p_left_out text[], out msg_ids bigint[], out pool_ids text[]
)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  with waiting as materialized (
    select m.msg_id, m.pool_id
    from unnest(p_lanes, p_wanted) l (lane, wanted)
    cross join lateral (
      select q.msg_id, q.message ->> 'pool_id' as pool_id
      from pgmq.q_intake_queue q
      where q.msg_id >= l.lane::bigint << 40 and q.msg_id < (l.lane::bigint + 1) << 40
        and q.vt <= clock_timestamp()
        and (q.read_ct < 2 or intake.takeovers(q.message, q.read_ct + 1) < 2)
        and (p_left_out = '{}' or q.message ->> 'pool_id' is null or q.message ->> 'pool_id' <> all (p_left_out))
      order by q.msg_id
      limit l.wanted
      for update skip locked
    ) m
  )
  select coalesce(array_agg(w.msg_id), '{}'), coalesce(array_agg(w.pool_id), '{}') into msg_ids, pool_ids from waiting w;
end
$$;

-- Promise: a suspect among the first thousand messages of each lane that no worker holds, locked, with its pool; not of the
-- pools in p_left_out. The one with the fewest takeovers, of equals the oldest: workers that die one after another for a
-- reason of their own are lost with one message after another, and not ten times with the first.
-- Second call: the same. Locks: the message; it waits for none.
create function intake.pick_suspect(p_lanes int[], p_left_out text[], out msg_ids bigint[], out pool_ids text[])
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  c_look_at constant int := 1000;
begin
  with suspect as materialized (
    select q.msg_id, q.message ->> 'pool_id' as pool_id
    from pgmq.q_intake_queue q
    where q.vt <= clock_timestamp() and q.msg_id = any (array(
      select m.msg_id
      from unnest(p_lanes) l (lane)
      cross join lateral (
        select h.msg_id, h.read_ct, h.vt, h.message
        from pgmq.q_intake_queue h
        where h.msg_id >= l.lane::bigint << 40 and h.msg_id < (l.lane::bigint + 1) << 40
        order by h.msg_id
        limit c_look_at
      ) m
      where m.vt <= clock_timestamp()
        and case when m.read_ct < 2 then false else intake.takeovers(m.message, m.read_ct + 1) >= 2 end
        and (m.message ->> 'pool_id' is null or m.message ->> 'pool_id' <> all (p_left_out))
    ))
    order by intake.takeovers(q.message, q.read_ct + 1), q.enqueued_at, q.msg_id
    limit 1
    for update skip locked
  )
  select coalesce(array_agg(s.msg_id), '{}'), coalesce(array_agg(s.pool_id), '{}') into msg_ids, pool_ids from suspect s;
end
$$;

-- Promise: those of the messages whose pool has another lane stand in that one: with new ids, as old as they were, with the
-- same read_ct, and their claims know them. Returns the old ids of all that are not where they belong: also of those that
-- stay for now, because another transaction works on their claim. Second call: none. Locks: the messages, which the caller
-- holds, and which no worker has under a lease → their claims, without waiting: a session that ends a claim waits for its
-- message.
create function intake.move_to_lane(p_msg_ids bigint[]) returns bigint[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_strays bigint[];
begin
  with stray as materialized (
    select q.msg_id, g.lane, intake.uuid_or_null(q.message ->> 'claim_id') as claim_id
    from pgmq.q_intake_queue q
    join public.engine_config g on g.pool_id = q.message ->> 'pool_id' and g.lane <> q.msg_id >> 40
    where q.msg_id = any (p_msg_ids)
    order by q.msg_id
  ),
  held as materialized (
    select c.claim_id from public.claims c
    where c.claim_id = any (array(select s.claim_id from stray s)) for update skip locked
  ),
  moved as materialized (
    select s.msg_id, s.claim_id, (s.lane::bigint << 40) + nextval('pgmq.q_intake_queue_msg_id_seq') as new_id
    from stray s
    where s.claim_id in (select h.claim_id from held h)
      or not exists (select from public.claims c where c.claim_id = s.claim_id)
  ),
  gone as (
    delete from pgmq.q_intake_queue q using moved m
    where q.msg_id = m.msg_id and q.msg_id = any (p_msg_ids)
    returning q.msg_id, m.new_id, to_jsonb(q) as was
  ),
  sent as (
    -- Whatever other columns this version of pgmq has come along. A mark of untried deliveries stays one: it names the id.
    insert into pgmq.q_intake_queue overriding system value
    select n.*
    from gone g
    cross join lateral jsonb_populate_record(null::pgmq.q_intake_queue, g.was || jsonb_build_object(
      'msg_id', g.new_id, 'message', case
        when g.was #> '{message,untried}' = jsonb_build_array(g.msg_id, g.was -> 'read_ct')
          then jsonb_set(g.was -> 'message', '{untried,0}', to_jsonb(g.new_id))
        else g.was -> 'message'
      end
    )) n
  ),
  followed as (
    update public.claims c set msg_id = m.new_id
    from moved m
    where c.claim_id = m.claim_id and c.claim_id = any (array(select h.claim_id from held h))
      and c.msg_id = m.msg_id and c.state in ('queued', 'validated')
  )
  select coalesce(array_agg(s.msg_id), '{}') into v_strays from stray s;
  return v_strays;
end
$$;

-- Promise: the ids of the picked messages that are to be taken: none of p_strays, and of each pool the oldest, as many as it
-- has room for. Messages taken of a pool with a ceiling are taken out of its bucket. Second call: takes them out again.
-- Locks: the buckets, which the caller holds already (intake.tokens_of).
create function intake.within_room(
  p_msg_ids bigint[], p_msg_pools text[], p_strays bigint[], p_pool_ids text[], p_rooms int[]
)
returns bigint[]
language plpgsql set search_path = '' as $$
declare
  v_msg_ids bigint[];
begin
  with taken as materialized (
    select n.msg_id, n.pool_id
    from (
      select m.msg_id, m.pool_id, row_number() over (partition by m.pool_id order by m.msg_id) as nth
      from unnest(p_msg_ids, p_msg_pools) m (msg_id, pool_id)
      where m.msg_id not in (select s from unnest(p_strays) s)
    ) n
    left join unnest(p_pool_ids, p_rooms) r (pool_id, room) on r.pool_id = n.pool_id
    where n.nth <= coalesce(r.room, n.nth)
  ),
  spent as (
    update intake.pool_allowances a
    set tokens = least(c.commit_rate_per_sec, a.tokens
        + c.commit_rate_per_sec * greatest(0, extract(epoch from clock_timestamp() - a.filled_at))) - t.messages,
      filled_at = clock_timestamp()
    from (select k.pool_id, count(*) as messages from taken k group by k.pool_id) t
    join public.engine_config c on c.pool_id = t.pool_id
    where a.pool_id = t.pool_id and c.commit_rate_per_sec is not null
  )
  select coalesce(array_agg(t.msg_id), '{}') into v_msg_ids from taken t;
  return v_msg_ids;
end
$$;

-- Promise: the messages that may be taken of these lanes, or one suspect of them; locked, and all in the lanes of their pools.
-- Those that were not are moved there instead, and are found by a later take. Messages taken of a pool with a ceiling are
-- taken out of its bucket. Second call: other messages, once the caller has leased these.
-- Locks: those of room_in_lanes → the messages → those of move_to_lane; it waits for none.
create function intake.messages_to_take(p_lanes int[], p_wanted int[], p_suspects boolean) returns bigint[]
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_room record := intake.room_in_lanes(p_lanes, p_wanted);
  -- Where pools share a lane, one may have room while another has none.
  v_left_out text[] := array(
    select r.pool_id from unnest(v_room.pool_ids, v_room.pool_lanes, v_room.rooms) r (pool_id, lane, room)
    where r.room = 0 and r.lane = any (v_room.lanes)
  );
  v_picked record;
  v_strangers bigint[];
  v_shut text[];
begin
  loop
    if p_suspects then
      v_picked := intake.pick_suspect(v_room.lanes, v_left_out);
    else
      v_picked := intake.pick_messages(v_room.lanes, v_room.wanted, v_left_out);
    end if;
    -- "is not true" keeps it a hashed lookup, and lets a message without a pool be a stranger.
    v_strangers := array(
      select m.msg_id from unnest(v_picked.msg_ids, v_picked.pool_ids) m (msg_id, pool_id)
      where ((m.msg_id >> 40, m.pool_id) in (select * from unnest(v_room.pool_lanes::bigint[], v_room.pool_ids))) is not true
    );
    exit when v_strangers = '{}';
    v_shut := array(
      select p.pool_id
      from (
        select distinct m.pool_id from unnest(v_picked.msg_ids, v_picked.pool_ids) m (msg_id, pool_id)
        where m.msg_id = any (v_strangers)
      ) p
      where not pg_catalog.pg_try_advisory_xact_lock_shared(intake.validation_lock_key(p.pool_id))
    );
    exit when v_shut = '{}';
    v_left_out := v_left_out || v_shut;
  end loop;
  if v_strangers = '{}' and not v_room.is_metered then
    return v_picked.msg_ids;
  end if;
  return intake.within_room(
    v_picked.msg_ids, v_picked.pool_ids, intake.move_to_lane(v_strangers), v_room.pool_ids, v_room.rooms
  );
end
$$;

-- Promise: these messages, which the caller has locked, are under a lease of p_lease_sec seconds or the pool's
-- visibility_timeout_sec, whichever is longer; what a worker has to know of each, oldest first (see bridge_take).
-- Second call: a delivery more of each. Locks: the messages, held already.
create function intake.lease_messages(p_msg_ids bigint[], p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb, claim_state text)
language plpgsql set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  -- Nearly always none, and then the pool of each message need not be asked.
  v_has_longer boolean := exists (
    select from public.engine_config c
    where c.lane = any (array(select distinct m >> 40 from unnest(p_msg_ids) m)) and c.visibility_timeout_sec > p_lease_sec
  );
begin
  return query
  with taken as (
    update pgmq.q_intake_queue q
    set read_ct = q.read_ct + 1,
      vt = clock_timestamp() + make_interval(secs => case when v_has_longer then greatest(p_lease_sec, (
        select c.visibility_timeout_sec from public.engine_config c where c.pool_id = q.message ->> 'pool_id'
      )) else p_lease_sec end)
    where q.msg_id = any (p_msg_ids)
    returning q.msg_id, q.read_ct, q.message, q.message ->> 'claim_id' as id, q.message ->> 'resource_id' as slot
  )
  -- Calls cost more than the rest of the row: a count is asked for only where there is one, the slot's letters are made small
  -- only where they differ, and the test of a uuid is written out (intake.uuid_or_null takes 6.6 µs, this 1.3 µs).
  select t.msg_id, t.read_ct,
    1 + case when t.message ? 'tried' then least(intake.count_in(t.message, 'tried'), t.read_ct - 1) else 0 end,
    case when t.read_ct = 1 then 0 else intake.takeovers(t.message, t.read_ct) end,
    t.message, (
      select case
        when (c.slot_id::text = t.slot or c.slot_id::text = lower(t.slot)) and c.pool_id = t.message ->> 'pool_id'
          and c.user_id = t.message ->> 'user_id' then case when c.end_as is null then c.state::text else 'ending' end
        else 'mismatch'
      end
      from public.claims c
      where c.claim_id = case
        when t.id like '________-____-____-____-____________' and length(replace(t.id, '-', '')) = 32
          and t.id !~ '[^0-9a-fA-F-]' then t.id::uuid
      end
    )
  from taken t
  order by t.msg_id;
end
$$;

-- Promise: of each of the lanes up to as many messages as are wanted, that no worker holds, oldest first, under a lease of
-- p_lease_sec seconds or the pool's visibility_timeout_sec, whichever is longer. Of a pool with commit_rate_per_sec no more
-- than that allows now, for all workers together; messages that are taken count against it. No suspect (bridge_take_suspect).
-- attempts counts the deliveries that failed and this one; takeovers those before it, since the last that was finished, that
-- no worker finished. claim_state is null for a message put there by hand, ending where the claim is going to end, and
-- mismatch where it is of another slot, pool or user than the message tells. None of a pool that begins to validate in a transaction that has not ended: a worker
-- that asks bridge_config afterwards is told the rules that hold for what it took, or those messages count as validated
-- (intake.validation_begins). A message whose pool has got a lane of its own since it was sent is moved there instead, and
-- taken by a later call: so trust the pool_id in the message, and not the lane it was asked for in.
-- Second call: other messages, until the lease has run out. Locks: those of intake.messages_to_take, until commit.
create function public.bridge_take(p_lanes int[], p_wanted int[], p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb, claim_state text)
language plpgsql security definer set search_path = '' as $$
begin
  return query select * from intake.lease_messages(intake.messages_to_take(p_lanes, p_wanted, false), p_lease_sec);
end
$$;

-- Promise: at most one message of these lanes, under a lease as in bridge_take, that is a suspect: no worker has finished it
-- for two deliveries or more, so it may be what kills them, and it is taken alone (intake.pick_suspect).
-- Second call: another one. Locks: as bridge_take.
create function public.bridge_take_suspect(p_lanes int[], p_lease_sec int)
returns table (msg_id bigint, read_ct int, attempts int, takeovers int, message jsonb, claim_state text)
language plpgsql security definer set search_path = '' as $$
begin
  return query
  select l.* from intake.lease_messages(
    intake.messages_to_take(p_lanes, array_fill(1, array[coalesce(cardinality(p_lanes), 0)]), true), p_lease_sec
  ) l;
end
$$;

-- Promise: the leases that are still held last p_lease_sec from now, or longer if they did before. Returns the ids of
-- those; the others are lost. A message that its own worker has handed back counts as held until another worker takes
-- it: workers stop extending before they finish. Second call: pushes again. Locks: the messages.
create function public.bridge_extend(p_msg_ids bigint[], p_read_cts int[], p_lease_sec int) returns setof bigint
language sql security definer set search_path = '' as $$
  update pgmq.q_intake_queue q
  set vt = greatest(q.vt, clock_timestamp() + make_interval(secs => p_lease_sec))
  from unnest(p_msg_ids, p_read_cts) as t (msg_id, read_ct)
  where q.msg_id = t.msg_id and q.read_ct = t.read_ct
  returning q.msg_id;
$$;

-- Promise: for each of the claims that is live whether it is the first of its slot. It stays so while the claim lives: no
-- other claim of its slot begins or ends then. Hooks get a key made of it, so a claim that has ended has no row: a worker that
-- asks late must not send another key than the one before it. Second call: the same. Locks: none.
create function public.bridge_first_claims(p_claim_ids uuid[]) returns table (claim_id uuid, is_first boolean)
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  select c.claim_id, not exists (
    select from public.claims f where f.slot_id = c.slot_id and f.freed_at is not null
  )
  from public.claims c
  where c.claim_id = any (p_claim_ids) and coalesce(c.freed_at, 'infinity') = 'infinity';
end
$$;
