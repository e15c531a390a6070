create or replace function public.reap_orphaned_slots(p_stale_threshold interval default '10 minutes')
returns int
language plpgsql
security definer
set search_path = ''
as $$
declare
  v_reaped int;
begin
  perform intake.ensure_inventory();
  update public.inventory_slots s
  set status = 'AVAILABLE', locked_by = null, locked_at = null
  where s.id in (
    select o.id from public.inventory_slots o
    where o.status = 'RESERVED' and o.locked_at < now() - p_stale_threshold
      and not exists (select from pgmq.q_intake_queue q where q.message ->> 'resource_id' = o.id::text)
    for update skip locked
  );
  get diagnostics v_reaped = row_count;
  return v_reaped;
end
$$;
