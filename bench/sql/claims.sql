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

-- Promise: false switches autovacuum off for the slots, so their statistics go stale; true switches it on again.
-- Second call: changes nothing. Locks: both tables, briefly.
create function bench.set_autovacuum(p_on boolean)
returns void
language plpgsql
set search_path = ''
as $$
begin
  if p_on then
    alter table plain.inventory_slots reset (autovacuum_enabled);
    alter table public.inventory_slots reset (autovacuum_enabled);
  else
    alter table plain.inventory_slots set (autovacuum_enabled = off);
    alter table public.inventory_slots set (autovacuum_enabled = off);
  end if;
end
$$;
