select s.pool_id as "poolId", s.id as "slotId", s.status
from public.inventory_slots s
order by s.pool_id, s.id;
