select t.resource_id as "slotId", t.claim_id as "claimId", t.pool_id as "poolId", t.user_id as "userId"
from public.confirmed_tickets t
order by t.resource_id;
