-- LEDGER, part 2: the tickets, a page at a time, to be compared with the intake ("sluice reconcile").

-- Promise: p_limit tickets after p_after in the order of their slots, or those of p_resource_ids. Second call: the same.
-- Locks: none. Definer: to a role under the row policy no ticket would be there, and each claim would look lost.
create function public.tickets_page(
  p_after uuid default null,
  p_limit int default 1000,
  p_resource_ids uuid[] default null
)
returns table (slot_id uuid, pool_id text, user_id text, claim_id uuid)
language sql
stable
security definer
set search_path = ''
as $$
  select t.resource_id, t.pool_id, t.user_id, t.claim_id
  from public.confirmed_tickets t
  where (p_after is null or t.resource_id > p_after)
    and (p_resource_ids is null or t.resource_id = any (p_resource_ids))
  order by t.resource_id
  limit p_limit;
$$;
