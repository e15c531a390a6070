-- INTAKE, part 4: the slot cache. These functions keep manifest, marks and slots in step, and bring the slots back after
-- a crash, a failover or a restore has emptied the UNLOGGED tables.
--
-- THE ORDER OF LOCKS, for all that touches slots:
--   0. the holder's count (advisory; intake.lock_holders), where the pool has a limit; then orders, in the order of their ids. A
--      new claim has an order of its own, which no other session knows.
--   1. claims, in the order of their ids. A session that needs their messages or dead letters, and waits for them, locks those
--      first, in the order of their ids
--   2. pools (advisory): all that the transaction needs, in the order of their names, before anything below. A rebuild has
--      its pool's lock alone (intake.rebuild_pools, for a single claim intake.open_pool); a session that ends a claim or sells
--      its slot shares it (intake.share_pools), because a rebuild in progress would not see the change.
--   3. pool by pool, in the order of their names: slots → total → mark
-- A claim takes 2 before 1: a rebuild only reads claims, and a session that waits for a claim's row has no pool's lock yet.
-- A session that cannot keep the order never waits: it uses skip locked, or a try, as a batch of claims does with lost pools. A session
-- that ends claims of many pools tries them too (intake.locked_slots), so that one that is locked does not hold up the others.
-- test/claim/lock_order.test.ts provokes each pair.

-- Promise: the key of the advisory lock that guards a pool's cache; the same for the same pool.
-- Second call: same value. Locks: none.
create function intake.pool_lock_key(p_pool_id text) returns bigint
language sql immutable parallel safe set search_path = '' as $$
  select pg_catalog.hashtextextended('sluice pool ' || p_pool_id, 0);
$$;

-- The slots that a message or a dead letter holds because no claim does: it was put there by hand, without a claim_id or
-- with an unknown one, and the bridge carries it all the same. A message that names a claim holds nothing by itself: the
-- claim does, and if the claim has ended the bridge drops the message. Reaper, rebuild, refusal, discard and reconcile all
-- use this view. The test of a uuid is written out (intake.uuid_or_null takes 6.6 µs, this 1.3 µs).
create view intake.held_by_hand as
select m.pool_id, m.slot_id, m.user_id, m.enqueued_at
from (
  select e.message ->> 'pool_id' as pool_id, e.message ->> 'user_id' as user_id, e.enqueued_at,
    case
      when e.message ->> 'resource_id' like '________-____-____-____-____________'
        and length(replace(e.message ->> 'resource_id', '-', '')) = 32
        and e.message ->> 'resource_id' !~ '[^0-9a-fA-F-]' then (e.message ->> 'resource_id')::uuid
    end as slot_id,
    case
      when e.message ->> 'claim_id' like '________-____-____-____-____________'
        and length(replace(e.message ->> 'claim_id', '-', '')) = 32
        and e.message ->> 'claim_id' !~ '[^0-9a-fA-F-]' then (e.message ->> 'claim_id')::uuid
    end as claim_id
  from (
    select q.message, q.enqueued_at from pgmq.q_intake_queue q
    union all
    select d.message, d.enqueued_at from pgmq.q_intake_dlq d
  ) e
) m
where not exists (select from public.claims c where c.claim_id = m.claim_id);

-- Promise: withdrawn slots whose claim ended while the pool's cache was lost leave the manifest and the capacity, as they do
-- otherwise when the claim ends (return_slots). Second call: changes nothing. Locks: their manifest rows → total.
create function intake.forget_withdrawn(p_pool_id text) returns void
language plpgsql set search_path = '' as $$
begin
  with gone as (
    delete from public.slot_manifest m
    where m.pool_id = p_pool_id and m.withdrawn_at is not null
      and not exists (select from public.claims c where c.slot_id = m.slot_id and c.freed_at is null)
    returning m.slot_id
  )
  update intake.pool_totals t
  set slots = t.slots - g.slots
  from (select count(*) as slots from gone) g
  where t.pool_id = p_pool_id and g.slots > 0;
end
$$;

-- Promise: after it, the pool's slots stand in the cache as manifest, claims and unclaimed messages say.
-- True when this call did it. Second call: finds the mark and returns false, changes nothing.
-- Locks: the pool's advisory lock until the end of the transaction; a concurrent caller waits for it.
-- It reads whole tables, so it undoes the settings that keep the claim path off sequential scans. After a crash
-- others rebuild other pools at the same time: the cache is empty for the planner and full before the plan has run, and a
-- nested loop would compare each slot with all of theirs while every claim waits (13 s for 15,000 slots, seen).
-- A million slots take about 5 s of CPU, most of it for entries in the three indexes: the stripes 1.8 s, the primary key 1.0,
-- the order of sale 0.6. Reading takes 0.9 s, 160,000 messages 0.7, the rows 0.5. Two costs are avoided: the domain would check
-- the pool's name for each slot (0.6 s), and with the usual work_mem joins, sort and the trigger's rows go through files (0.3).
-- In the order of sale two of the indexes grow at their end, which costs a third of an entry elsewhere. Tried, CPU seconds for a
-- million: this 5.9, in the order of the stripes 7.3, free slots first 7.2, stripes indexed before pools 5.8, no trigger 5.8.
create function intake.rebuild_inventory(p_pool_id text) returns boolean
language plpgsql set search_path = ''
set plan_cache_mode = force_custom_plan set enable_seqscan = on set enable_bitmapscan = on set enable_nestloop = off
set work_mem = '64MB' as $$
declare
  v_pool_id public.given_pool_id := p_pool_id;
begin
  perform pg_catalog.pg_advisory_xact_lock(intake.pool_lock_key(p_pool_id));
  insert into intake.pool_marks (pool_id, low_order)
  select t.pool_id, 0 from intake.pool_totals t where t.pool_id = p_pool_id and t.slots > 0
  on conflict (pool_id) do nothing;
  if not found then
    return false;
  end if;
  perform intake.forget_withdrawn(p_pool_id);
  -- They are on the manifest already: without this the trigger would look each of them up.
  perform set_config('intake.rebuilding', 'on', true);
  with by_hand as materialized (
    select distinct on (h.slot_id) h.slot_id, h.user_id, h.enqueued_at
    from intake.held_by_hand h
    where h.pool_id = p_pool_id
  )
  insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at, sale_order, label)
  select
    m.slot_id,
    v_pool_id,
    case
      when c.state = 'committed' then 'CONSUMED'
      when c.state is not null or h.slot_id is not null then 'RESERVED'
      else 'AVAILABLE'
    end::public.slot_status,
    coalesce(c.user_id, h.user_id),
    coalesce(c.claimed_at, h.enqueued_at),
    m.sale_order,
    m.label
  from public.slot_manifest m
  left join public.claims c on c.slot_id = m.slot_id and c.freed_at is null
  left join by_hand h on h.slot_id = m.slot_id
  where m.pool_id = p_pool_id
    and not exists (select from public.inventory_slots s where s.id = m.slot_id)
  order by m.sale_order;
  update intake.pool_marks k
  set low_order = f.sale_order
  from (
    select s.sale_order from public.inventory_slots s
    where s.pool_id = p_pool_id and s.status = 'AVAILABLE' order by s.sale_order limit 1
  ) f
  where k.pool_id = p_pool_id;
  perform set_config('intake.rebuilding', 'off', true);
  return true;
end
$$;

-- Promise: those of the pools that have lost their cache have it again. Returns how many were rebuilt here. Second call: 0.
-- Locks: those of rebuild_inventory, in the order of the pools' names (see the top of this file).
create function intake.rebuild_pools(p_pool_ids text[]) returns int
language plpgsql set search_path = '' as $$
begin
  return (
    select count(*) filter (where intake.rebuild_inventory(lost.pool_id))
    from (
      select distinct p.pool_id
      from unnest(p_pool_ids) p (pool_id)
      join intake.pool_totals t on t.pool_id = p.pool_id
      where t.slots > 0 and not exists (select from intake.pool_marks m where m.pool_id = p.pool_id)
      order by p.pool_id
    ) lost
  );
end
$$;

-- Promise: none of the pools is being rebuilt, and none begins to be before this transaction ends. Second call: has the
-- locks already. Locks: the pools (advisory, shared), in the order of their names (see the top of this file).
create function intake.share_pools(p_pool_ids text[]) returns void
language plpgsql set search_path = '' as $$
begin
  perform pg_catalog.pg_advisory_xact_lock_shared(intake.pool_lock_key(k.pool_id))
  from (select distinct p.pool_id from unnest(p_pool_ids) p (pool_id) order by p.pool_id) k;
end
$$;

-- Promise: rebuilds the smallest pool that has lost its cache, and returns its name; null when none is left that other sessions
-- are not rebuilding. One pool a call, so that the caller can commit each by itself: its lock delays only work on that pool,
-- and an interrupted later rebuild does not undo this one. A claim rebuilds its own pool and does not wait for this
-- (intake.open_pool). Second call: the next pool. Locks: those of rebuild_inventory; it waits for none.
create function intake.rebuild_lost_pool() returns text
language plpgsql set search_path = '' as $$
declare
  v_pool_id text;
begin
  for v_pool_id in
    select t.pool_id
    from intake.pool_totals t
    where t.slots > 0 and not exists (select from intake.pool_marks m where m.pool_id = t.pool_id)
    order by t.slots, t.pool_id
  loop
    if pg_catalog.pg_try_advisory_xact_lock(intake.pool_lock_key(v_pool_id)) then
      perform intake.rebuild_inventory(v_pool_id);
      return v_pool_id;
    end if;
  end loop;
  return null;
end
$$;

-- Promise: no pool is lost, but for those that others are rebuilding now. For cron; the Node scheduler calls the function.
-- A procedure without settings of its own, because it commits after each pool. Second call: does nothing.
-- Locks: those of rebuild_lost_pool, one pool at a time.
create procedure intake.rebuild_lost_pools()
language plpgsql as $$
begin
  while intake.rebuild_lost_pool() is not null loop
    commit;
  end loop;
end
$$;

-- Promise: every pool with slots on the manifest has its cache, all in this transaction: for an import, and for a look at
-- all pools while sales are stopped. Returns how many were rebuilt.
-- Second call: 0. Locks: those of rebuild_pools.
create function intake.ensure_inventory() returns int
language sql set search_path = '' as $$
  select intake.rebuild_pools(array(select t.pool_id from intake.pool_totals t));
$$;

-- Promise: slots that are for sale can be found: the mark is not above them and sold_out is off.
-- Second call: changes nothing. Locks: the mark, even when nothing has to change: otherwise another session could
-- declare "sold out" from a snapshot that does not see the slot yet.
create function intake.offer_slots(p_pool_id text, p_low_order bigint) returns void
language plpgsql set search_path = '' as $$
begin
  perform from intake.pool_marks m where m.pool_id = p_pool_id for update;
  update intake.pool_marks m
  set low_order = least(m.low_order, p_low_order), sold_out = false
  where m.pool_id = p_pool_id and (m.sold_out or m.low_order > p_low_order);
end
$$;

-- Promise: those of the slots that are RESERVED go back on sale, at the head of the line: the mark has passed their
-- old place, and going back to it would make every batch walk over the slots sold since. A slot that was deleted while
-- a claim held it is withdrawn now. Returns how many went back. Second call: 0.
-- Locks: slots → total → mark, as slots_added and slots_withdrawn do, pool by pool in the order of their names. A caller
-- therefore frees the slots of several pools in one call.
create function intake.return_slots(p_slot_ids uuid[]) returns int
language plpgsql set search_path = '' as $$
declare
  v_pool_id text;
  v_slot_ids uuid[];
  v_pool_returned int;
  v_returned int := 0;
begin
  for v_pool_id, v_slot_ids in
    select f.pool_id, array_agg(f.slot_id) from public.slot_manifest f
    where f.slot_id = any (p_slot_ids) group by f.pool_id order by f.pool_id
  loop
    -- Locked before we look which slots are gone: one that another session is deleting now is gone afterwards.
    perform from public.inventory_slots s
    where s.id = any (v_slot_ids) and s.pool_id = v_pool_id and s.status = 'RESERVED' for update;
    -- A rebuild has brought it back, for as long as its claim was live. The trigger takes it off the manifest.
    if exists (select from public.slot_manifest f where f.pool_id = v_pool_id and f.withdrawn_at is not null) then
      delete from public.inventory_slots s
      using public.slot_manifest f
      where s.id = any (v_slot_ids) and s.pool_id = v_pool_id and s.status = 'RESERVED'
        and f.slot_id = s.id and f.withdrawn_at is not null;
    end if;
    with gone as (
      delete from public.slot_manifest f
      using intake.pool_marks m
      where f.slot_id = any (v_slot_ids) and f.pool_id = v_pool_id and m.pool_id = v_pool_id
        and not exists (select from public.inventory_slots s where s.id = f.slot_id)
      returning f.slot_id
    )
    update intake.pool_totals t
    set slots = t.slots - g.slots
    from (select count(*) as slots from gone) g
    where t.pool_id = v_pool_id and g.slots > 0;
    update public.inventory_slots s
    set status = 'AVAILABLE', locked_by = null, locked_at = null, sale_order = m.low_order
    from intake.pool_marks m
    where s.id = any (v_slot_ids) and s.pool_id = v_pool_id and s.status = 'RESERVED' and m.pool_id = v_pool_id;
    get diagnostics v_pool_returned = row_count;
    v_returned := v_returned + v_pool_returned;
  end loop;
  return v_returned;
end
$$;

-- Trigger. Promise: a slot keeps its id and its pool; changing either is refused. Second call: same refusal.
-- Locks: none.
create function intake.slot_identity_is_fixed() returns trigger
language plpgsql set search_path = '' as $$
begin
  if new.id <> old.id or new.pool_id <> old.pool_id then
    raise exception 'a slot keeps its id and its pool'
      using errcode = 'SL001', hint = 'delete the slot and insert a new one';
  end if;
  return new;
end
$$;

-- A claim never sets id or pool_id.
create trigger slot_identity_is_fixed
  before update of id, pool_id on public.inventory_slots
  for each row execute function intake.slot_identity_is_fixed();

-- Trigger. Promise: `insert into inventory_slots` is all that a person has to do to put slots on sale:
-- manifest, capacity and mark follow in the same transaction. Second insert of a known id after a crash
-- adds nothing to the manifest. Locks: those of rebuild_pools → pool by pool the total, then the mark.
-- Definer: a role that may insert slots need not have rights to the manifest.
create function intake.slots_added() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_pool record;
begin
  perform intake.rebuild_pools(array(select distinct a.pool_id::text from added a));
  for v_pool in
    with listed as (
      insert into public.slot_manifest (slot_id, pool_id, sale_order, label)
      select a.id, a.pool_id, a.sale_order, a.label from added a
      on conflict (slot_id) do nothing
      returning pool_id
    )
    select a.pool_id, min(a.sale_order) as low_order, count(*) as added,
      (select count(*) from listed l where l.pool_id = a.pool_id) as listed
    from added a
    group by a.pool_id
    order by a.pool_id
  loop
    if v_pool.listed < v_pool.added and exists (
      select from added a join public.slot_manifest m on m.slot_id = a.id where m.pool_id <> a.pool_id
    ) then
      raise exception 'a slot of pool % is on the manifest of another pool', v_pool.pool_id
        using errcode = 'SL001', hint = 'a slot id belongs to one pool for ever; use a new id';
    end if;
    if v_pool.listed < v_pool.added then
      update public.slot_manifest m set withdrawn_at = null
      from added a where m.slot_id = a.id and m.pool_id = v_pool.pool_id and m.withdrawn_at is not null;
    end if;
    if v_pool.listed > 0 then
      insert into intake.pool_totals as t (pool_id, slots) values (v_pool.pool_id, v_pool.listed)
      on conflict (pool_id) do update set slots = t.slots + excluded.slots;
    end if;
    insert into intake.pool_marks (pool_id, low_order) values (v_pool.pool_id, v_pool.low_order)
    on conflict (pool_id) do nothing;
    perform intake.offer_slots(v_pool.pool_id, v_pool.low_order);
  end loop;
  return null;
end
$$;

create trigger slots_added
  after insert on public.inventory_slots
  referencing new table as added
  for each statement when (current_setting('intake.rebuilding', true) is distinct from 'on')
  execute function intake.slots_added();

-- Trigger. Promise: the manifest has the slot's new label. Second call: changes nothing. Locks: the manifest row, after the slot.
-- Definer: as slots_added.
create function intake.slot_relabelled() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.slot_manifest m set label = new.label where m.slot_id = new.id;
  return null;
end
$$;

-- The column list keeps it off the hot path: a claim sets no label.
create trigger slot_relabelled
  after update of label on public.inventory_slots
  for each row when (new.label is distinct from old.label)
  execute function intake.slot_relabelled();

-- Trigger. Promise: a slot deleted from the cache is withdrawn from sale, for good. While a claim holds it, it stays on the
-- manifest with withdrawn_at: a rebuild brings it back as claimed, and it leaves when the claim ends (return_slots).
-- Second delete: finds nothing.
-- Locks: manifest rows, pool_totals row. Definer: as slots_added.
create function intake.slots_withdrawn() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.slot_manifest m
  set withdrawn_at = now()
  from withdrawn w
  where m.slot_id = w.id and m.withdrawn_at is null
    and exists (select from public.claims c where c.slot_id = w.id and c.freed_at is null);
  with gone as (
    delete from public.slot_manifest m
    using withdrawn w
    where m.slot_id = w.id
      and not exists (select from public.claims c where c.slot_id = w.id and c.freed_at is null)
    returning m.pool_id
  )
  update intake.pool_totals t
  set slots = t.slots - g.slots
  from (select gone.pool_id, count(*) as slots from gone group by gone.pool_id) g
  where t.pool_id = g.pool_id;
  return null;
end
$$;

create trigger slots_withdrawn
  after delete on public.inventory_slots
  referencing old table as withdrawn
  for each statement execute function intake.slots_withdrawn();

-- Trigger. Promise: TRUNCATE of the cache is a crash by hand: the next look rebuilds it.
-- Second call: nothing left to delete. Locks: none beyond TRUNCATE's own. Definer: as slots_added.
create function intake.cache_emptied() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  delete from intake.pool_marks;
  return null;
end
$$;

create trigger cache_emptied
  after truncate on public.inventory_slots
  for each statement execute function intake.cache_emptied();

-- Trigger. Promise: however a slot comes back on sale or moves up the line (release, expiry, reaper, a hand in
-- psql), the next claim can find it. Second call: changes nothing. Locks: mark, after the slot. Definer: as slots_added.
create function intake.slot_became_available() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform intake.offer_slots(new.pool_id, new.sale_order);
  return null;
end
$$;

-- The column list keeps it off the hot path: a claim sets status to RESERVED.
create trigger slot_became_available
  after update of status, sale_order on public.inventory_slots
  for each row when (
    new.status = 'AVAILABLE' and (old.status <> 'AVAILABLE' or new.sale_order < old.sale_order)
  )
  execute function intake.slot_became_available();
