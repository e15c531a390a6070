-- ORDERS, for operators: what their commands and pages ask beside 20260224100015_orders.sql.

-- Promise: the refund under this id, or no row. Second call: the same. Locks: none. Definer, as all that follow: service_role need
-- not have rights to the tables.
create function public.get_refund(p_id text) returns setof public.refunds_due
language sql stable security definer set search_path = '' as $$
  select r.* from public.refunds_due r where r.id = p_id;
$$;

-- Promise: the order that a payment is for; null where none is known. p_payment is the payment as Stripe names it, or with its
-- tenant in front (tenant/payment). Where two tenants have such a payment, that of the one that told it first.
-- Second call: the same. Locks: none.
create function public.order_of_payment(p_payment text) returns uuid
language sql stable security definer set search_path = '' as $$
  select p.order_id
  from webhook.tenants t
  join public.payments p on p.provider = t.tenant
    and p.object_id in (p_payment, case when starts_with(p_payment, t.tenant || '/') then substr(p_payment, length(t.tenant) + 2) end)
  where p.order_id is not null
  order by p.arrival
  limit 1;
$$;

-- Promise: what operators did here to an order, oldest first: to these claims of it, to its payments and to its refunds.
-- Second call: the same, later. Locks: none.
create function public.order_audit(p_order_id uuid, p_claim_ids uuid[]) returns setof audit.audit_logs
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select a.*
  from (
    select 'claim ' || i as subject from unnest(p_claim_ids) i
    union all
    select 'refund ' || r.id from public.refunds_due r where r.order_id = p_order_id
    union all
    select 'payment ' || p.provider || '/' || p.object_id from public.payments p where p.order_id = p_order_id
  ) s
  join audit.audit_logs a on a.subject = s.subject
  order by a.id;
$$;
