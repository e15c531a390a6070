select coalesce(json_agg(json_build_object(
  'slot', t.resource_id, 'claim', t.claim_id, 'user', t.user_id, 'pool', t.pool_id
)), '[]') as tickets
from public.confirmed_tickets t
