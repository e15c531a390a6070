-- The plain design that the bench measures against, in a schema of its own: an UNLOGGED slot table, no truth
-- behind it, one claim a transaction with pgmq.send. Written from the requirements document's description.
create schema plain;

select pgmq.create('plain_queue');

create unlogged table plain.inventory_slots (
  id uuid primary key default gen_random_uuid(),
  pool_id text not null,
  status public.slot_status not null default 'AVAILABLE',
  locked_by text,
  locked_at timestamptz
);

create index plain_available_slots
  on plain.inventory_slots (pool_id, status)
  where status = 'AVAILABLE';

-- Promise: any free slot for this user, and a message; null when none is free. Second call: another slot.
-- Locks: the slot. It has no order, so the planner is free to scan the whole table for `limit 1`.
create function plain.claim_resource_and_queue(
  p_pool_id text,
  p_user_id text
)
returns uuid
language plpgsql
set search_path = ''
as $$
declare
  v_slot_id uuid;
begin
  update plain.inventory_slots s
  set status = 'RESERVED', locked_by = p_user_id, locked_at = now()
  where s.id = (
    select f.id from plain.inventory_slots f
    where f.pool_id = p_pool_id and f.status = 'AVAILABLE'
    limit 1
    for update skip locked
  )
  returning s.id into v_slot_id;
  if v_slot_id is null then
    return null;
  end if;
  perform pgmq.send('plain_queue', jsonb_build_object(
    'pool_id', p_pool_id, 'resource_id', v_slot_id, 'user_id', p_user_id, 'state', 'queued'
  ));
  return v_slot_id;
end
$$;

-- The floor: one row, one commit.
create table plain.floor (
  id bigint generated always as identity primary key,
  payload text not null
);
