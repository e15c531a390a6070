select c.claim_id as "claimId", c.request_id as "requestId", c.pool_id as "poolId", c.slot_id as "slotId",
  c.user_id as "userId", c.state, c.freed_at is null as live, c.end_reason as "endReason"
from public.claims c
order by c.claim_id;
