-- The reaper as the requirements had it: a RESERVED slot that is old enough is for sale again, whoever waits for it. And
-- no constraint behind it: there a slot's row is all that says whose it is.
drop index public.one_live_claim_per_slot;

create function public.prd_reaper()
returns void
language sql
set search_path = ''
as $$
  update public.inventory_slots s
  set status = 'AVAILABLE', locked_by = null, locked_at = null
  where s.status = 'RESERVED' and s.locked_at < now() - interval '500 milliseconds';
$$;

select cron.schedule('prd_reaper', '1 seconds', 'select public.prd_reaper()');
