-- LEDGER, part 2: the tickets, a page at a time, to be compared with the intake ("sluice reconcile").

-- Promise: p_limit tickets after p_after in the order of their slots, or those of p_resource_ids. Second call: the same.
-- Locks: none. Definer: to a role under the row policy no ticket would be there, and each claim would look lost.
create function public.tickets_page(
  p_after uuid default null,
  p_limit int default 1000,
  p_resource_ids uuid[] default null
)
returns table (slot_id uuid, pool_id text, user_id text, claim_id uuid, verified boolean)
language plpgsql stable security definer set search_path = ''
-- A plan for the arguments that are given: a page far down begins where it begins, and not at the start. In SQL it
-- would be planned without them before Postgres 18, and all pages together would cost the square of the tickets.
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select t.resource_id, t.pool_id, t.user_id, t.claim_id, t.verified
  from public.confirmed_tickets t
  where (p_after is null or t.resource_id > p_after)
    and (p_resource_ids is null or t.resource_id = any (p_resource_ids))
  order by t.resource_id
  limit p_limit;
end
$$;
