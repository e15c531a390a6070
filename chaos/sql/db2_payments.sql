-- Amounts as in db2_credits.
select p.provider, p.object_id as object, p.user_id as "userId", p.state, p.amount::double precision as amount,
  p.refunded::double precision as refunded, p.currency
from public.payments p
order by p.provider, p.object_id;
