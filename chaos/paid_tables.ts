// The tables about paid orders in the shape of a history. $1 of the ledger's statements is the tenant of the payments.

const MS = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;

export const ORDERS = `
  select o.order_id as "orderId", o.pool_id as "poolId", o.user_id as "userId", o.seats,
    o.unit_price::float8 as "unitPrice", ${MS('o.hold_until')} as "holdUntil", ${MS('o.grace_until')} as "graceUntil",
    o.payment_key as "paymentKey"
  from public.orders o
  order by o.order_id`;

export const ORDER_CLAIMS = `
  select c.claim_id as "claimId", c.order_id as "orderId", c.slot_id as "slotId", c.state, c.freed_at is null as live,
    c.replaces, ${MS('c.freed_at')} as "freedAt"
  from public.claims c
  join public.orders o on o.order_id = c.order_id
  order by c.claim_id`;

export const DECISIONS = `
  select p.payment_key as "paymentKey", p.order_id as "orderId", p.decision, p.reason
  from public.order_payments p
  order by p.payment_key`;

export const CHECKOUTS = `
  select k.order_id as "orderId", k.n, k.session_id as "sessionId", k.state
  from public.checkouts k
  order by k.order_id, k.n`;

export const OUTBOX = 'select o.id, o.kind, o.state from public.claim_outbox o order by o.id';

export const REFUNDS = `
  select r.id, r.payment_key as "paymentKey", r.amount::float8 as amount, r.state from public.refunds_due r order by r.id`;

export const TOMBSTONES = `
  select v.claim_id as "claimId", v.order_id as "orderId", ${MS('v.voided_at')} as "voidedAt"
  from public.voided_tickets v
  order by v.claim_id`;

export const ORDER_TICKETS = `
  select t.claim_id as "claimId", t.order_id as "orderId" from public.confirmed_tickets t
  where t.order_id is not null
  order by t.claim_id`;

export const ORDER_CREDITS = `
  select c.provider || '/' || c.object_id as "paymentKey", c.amount::float8 as amount, c.kind
  from public.credit_ledger c
  where c.provider = $1
  order by c.id`;

export const ORDER_PAYMENTS = `
  select p.provider || '/' || p.object_id as "paymentKey", p.refunded::float8 as refunded
  from public.payments p
  where p.provider = $1
  order by p.object_id`;
