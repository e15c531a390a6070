-- What the bench needs beside the two designs: fresh pools, and buyers in sets.
create schema bench;

-- A role whose planner avoids the sequential scan: the plain design at its best.
create role plain_indexed superuser login password 'test';
alter role plain_indexed set enable_seqscan = off;

-- Promise: the plain design with one full pool and an empty queue. Second call: the same again.
-- Locks: its tables, exclusively.
create function bench.fill_plain(p_slots int)
returns void
language plpgsql
set search_path = ''
as $$
begin
  truncate plain.inventory_slots, pgmq.q_plain_queue, plain.floor;
  insert into plain.inventory_slots (pool_id) select 'bench' from generate_series(1, p_slots);
end
$$;

-- Promise: our design with one full pool, no claims and an empty queue. Second call: the same again.
-- Locks: its tables, exclusively.
create function bench.fill_ours(p_slots int)
returns void
language plpgsql
set search_path = ''
as $$
begin
  truncate public.inventory_slots, public.claims, public.slot_manifest, intake.pool_totals, pgmq.q_intake_queue;
  insert into public.engine_config (pool_id) values ('bench') on conflict do nothing;
  insert into public.inventory_slots (pool_id) select 'bench' from generate_series(1, p_slots);
end
$$;

-- Promise: every slot of the plain pool is sold, in one statement: what is left behind is what single claims
-- leave behind, a dead row for each sold one. Second call: sells nothing. Locks: the slots.
create function bench.sell_plain()
returns void
language sql
set search_path = ''
as $$
  update plain.inventory_slots
  set status = 'RESERVED', locked_by = 'user_1', locked_at = now()
  where status = 'AVAILABLE';
$$;

-- Promise: p_size buyers ask at once; returns how many got a slot. Second call: other buyers.
-- Locks: those of claim_batch.
create function bench.claim_many(
  p_size int,
  p_with_request_ids boolean
)
returns int
language plpgsql
set search_path = ''
as $$
declare
  v_first bigint := floor(random() * 1e12);
begin
  return (
    select count(*) filter (where b.outcome = 'claimed')
    from public.claim_batch(
      array_fill('bench'::text, array[p_size]),
      array(select 'user_' || (v_first + g) from generate_series(1, p_size) g),
      array(
        select case when p_with_request_ids then 'request_' || (v_first + g) end from generate_series(1, p_size) g
      )
    ) b
  );
end
$$;

-- Promise: p_size claim rows and their messages, written as claim_batch writes them, and nothing else: no pool is looked at, no
-- slot found or changed, no rule asked. Returns p_size. Second call: others. Locks: the new keys.
create function bench.insert_many(p_size int)
returns int
language plpgsql
set search_path = ''
as $$
declare
  v_first bigint := floor(random() * 1e12);
  v_lane bigint := intake.lane_of('bench');
  -- Ids begin with the time, as those of claims and slots do.
  v_begin text := lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '-7000';
begin
  with pair as materialized (
    select (v_begin || substr(gen_random_uuid()::text, 19))::uuid as id, 'user_' || (v_first + g) as user_id,
      (v_lane << 40) + nextval('pgmq.q_intake_queue_msg_id_seq') as msg_id
    from generate_series(1, p_size) g
  ),
  claimed as (
    insert into public.claims (claim_id, pool_id, slot_id, user_id, verified, msg_id)
    select p.id, 'bench', p.id, p.user_id, false, p.msg_id from pair p
  ),
  sent as (
    insert into pgmq.q_intake_queue (msg_id, vt, message) overriding system value
    select p.msg_id, clock_timestamp(), jsonb_build_object(
      'claim_id', p.id, 'pool_id', 'bench', 'resource_id', p.id, 'user_id', p.user_id, 'verified', false, 'state', 'queued'
    )
    from pair p
  )
  select count(*) into p_size from pair;
  return p_size;
end
$$;
