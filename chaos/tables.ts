// The tables of both databases in the shape of a history's final state.

export const CLAIMS = `
  select c.claim_id as "claimId", c.request_id as "requestId", c.pool_id as "poolId", c.slot_id as "slotId",
    c.user_id as "userId", c.state, c.freed_at is null as live, c.end_reason as "endReason", c.order_id as "orderId"
  from public.claims c
  order by c.claim_id`;

export const SLOTS = `
  select s.pool_id as "poolId", s.id as "slotId", s.status
  from public.inventory_slots s
  order by s.pool_id, s.id`;

/** Whose events and payments are about paid orders, and stand in a history apart from the others. */
export const PAID_TENANT = 'stripe:paid';

/**
 * Queue, dead letters and what operators took out of these, in one shape. A message is any JSON: one that is not an object
 * stands in the dead letters as {"payload": …}, and whatever identifies it is text.
 */
export const MESSAGES = `
  select m.place, m.msg_id::text as "msgId", m.message ->> 'claim_id' as "claimId", m.message ->> 'pool_id' as "poolId",
    coalesce(m.message ->> 'claim_id', m.message ->> 'resource_id', m.message ->> 'user_id') as identity,
    coalesce(m.message ->> 'reason', 'max_retries') as reason
  from (
    select 'queued' as place, q.msg_id, q.message from pgmq.q_intake_queue q
    union all
    select 'deadLetters', d.msg_id, d.message from pgmq.q_intake_dlq d
    union all
    select 'archivedLetters', a.msg_id, a.message from pgmq.a_intake_dlq a
  ) m
  order by m.place, m.msg_id`;

export const TICKETS = `
  select t.resource_id as "slotId", t.claim_id as "claimId", t.pool_id as "poolId", t.user_id as "userId"
  from public.confirmed_tickets t
  order by t.resource_id`;

const eventsWhere = (tenants: string): string => `
  select e.id, e.provider, coalesce(p.name, e.webhook_id::text) as endpoint, e.event_id as "eventId", e.status, e.attempts,
    e.takeovers, e.error, e.skipped_by as "skippedBy"
  from public.webhook_events e
  left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
  where ${tenants}
  order by e.id`;

export const EVENTS = eventsWhere(`e.provider <> '${PAID_TENANT}'`);
export const ORDER_EVENTS = eventsWhere(`e.provider = '${PAID_TENANT}'`);

/** A bigint comes as text; amounts here are far below 2^53. */
export const CREDITS = `
  select c.provider, c.event_id as "eventId", c.user_id as "userId", c.amount::double precision as amount, c.currency
  from public.credit_ledger c
  where c.provider <> '${PAID_TENANT}'
  order by c.id`;

/** Amounts as in the credits. */
export const PAYMENTS = `
  select p.provider, p.object_id as object, p.user_id as "userId", p.state, p.amount::double precision as amount,
    p.refunded::double precision as refunded, p.currency
  from public.payments p
  where p.provider <> '${PAID_TENANT}'
  order by p.provider, p.object_id`;

export const CALLS = `
  select c.site_id as "siteId", c.signature_hash as "signatureHash"
  from public.calls c
  order by c.id`;

/** The subject ends in what the action named: "dead letter 12", "webhook event <id>". Rules are set up past the operators. */
export const AUDIT = `
  select a.action, a.actor, a.reason, array[regexp_replace(a.subject, '^.* ', '')] as ids
  from audit.audit_logs a
  where a.action <> 'rule_change'
  order by a.id`;
