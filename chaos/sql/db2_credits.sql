-- A bigint comes as text; amounts here are far below 2^53.
select c.provider, c.event_id as "eventId", c.user_id as "userId", c.amount::double precision as amount, c.currency
from public.credit_ledger c
order by c.id;
