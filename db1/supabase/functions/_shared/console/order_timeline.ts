// What happened to an order, from both databases, in the order it happened. Pure.

import type { AuditRow } from './audit.ts';
import type { TimelineEvent } from './claims.ts';
import type {
  IntakeOrder,
  LedgerOrder,
  OrderClaim,
  OrderEvent,
  OrderPayment,
  RefundRow,
} from './order_shapes.ts';

/** `ledger` is undefined while DB2 does not answer; `audit` is what operators did, in both databases. */
export function orderTimeline(
  intake: IntakeOrder,
  ledger: LedgerOrder | undefined,
  audit: readonly AuditRow[],
): TimelineEvent[] {
  const events = [
    ...intakeEvents(intake),
    ...(ledger ? ledgerEvents(ledger, intake) : [UNREACHABLE]),
    ...audit.map(audited),
  ];
  return inOrder(events);
}

/** Its id is that of the first of its claims. */
export function orderedAt({ order, claims }: IntakeOrder): string {
  const first = claims.find(({ claim_id }) => claim_id === order.order_id) ?? claims[0];
  if (first === undefined) throw new Error(`order ${order.order_id} has no claims`);
  return first.claimed_at;
}

const UNREACHABLE: TimelineEvent = { at: null, what: 'ledger_unreachable', detail: {} };

const timeOf = ({ at }: TimelineEvent): number => (at === null ? Number.MAX_SAFE_INTEGER : Date.parse(at));

function intakeEvents(intake: IntakeOrder): TimelineEvent[] {
  const { order, claims, checkouts, decisions } = intake;
  const { seats, amount, currency, user_id, pool_id, hold_until } = order;
  const late = claims.filter(({ replaces }) => replaces !== null);
  const ended = claims.filter(({ ended_at }) => ended_at !== null);
  return [
    {
      at: orderedAt(intake),
      what: 'held',
      detail: { pool_id, user_id, seats, amount, currency, hold_until },
    },
    ...checkouts.map(({ created_at, n, state, session_id }) => ({
      at: created_at,
      what: 'checkout',
      detail: { checkout: n, state, session_id },
    })),
    ...decisions.map(({ decided_at, decision, reason, payment_key, amount: paid, is_own }) => ({
      at: decided_at,
      what: `decided_${decision}`,
      detail: { reason, payment_key, amount: paid, ...(!is_own && { is_own }) },
    })),
    ...together(late, claims, ({ claimed_at }) => ({ at: claimed_at, what: 'other_seats', detail: {} })),
    ...together(ended, claims, ({ ended_at, state, end_reason }) => ({
      at: ended_at,
      what: state,
      detail: { ...(end_reason !== null && { reason: end_reason }) },
    })),
  ];
}

/** Seats that took the same step at the same moment are one event. */
function together<Row extends { readonly claim_id: string }>(
  rows: readonly Row[],
  claims: readonly OrderClaim[],
  stepOf: (row: Row) => TimelineEvent,
): TimelineEvent[] {
  const labels = new Map(claims.map(({ claim_id, label }) => [claim_id, label ?? claim_id]));
  const steps = new Map<string, { step: TimelineEvent; seats: string[] }>();
  for (const row of rows) {
    const step = stepOf(row);
    const key = JSON.stringify(step);
    const known = steps.get(key) ?? { step, seats: [] };
    known.seats.push(labels.get(row.claim_id) ?? row.claim_id);
    steps.set(key, known);
  }
  return [...steps.values()].map(({ step, seats }) => ({ ...step, detail: { ...step.detail, seats } }));
}

function ledgerEvents(ledger: LedgerOrder, intake: IntakeOrder): TimelineEvent[] {
  const { events, outbox, refunds, tickets, voided } = ledger;
  const used = tickets.filter(({ used_at }) => used_at !== null);
  return [
    ...events.map(eventStep),
    ...ledger.payments.map((payment) => paymentEvent(payment, intake)),
    ...outbox
      .filter(({ state }) => state !== 'done')
      .map(({ created_at, kind, state, attempts, error }) => ({
        at: created_at,
        what: state === 'dead_letter' ? `${kind}_dead_letter` : `${kind}_waits`,
        detail: { attempts, ...(error !== null && { error }) },
      })),
    ...refunds.map(refundEvent),
    ...together(tickets, intake.claims, ({ confirmed_at }) => ({
      at: confirmed_at,
      what: 'ticket',
      detail: {},
    })),
    ...together(used, intake.claims, ({ used_at }) => ({ at: used_at, what: 'used', detail: {} })),
    ...together(voided, intake.claims, ({ voided_at, cause, confirmed_at }) => ({
      at: voided_at,
      what: 'ticket_voided',
      detail: { cause, was_ticket: confirmed_at !== null },
    })),
  ];
}

/** As it stands. Stripe tells whole seconds: a payment does not come before the session that it was made in. */
function paymentEvent(payment: OrderPayment, intake: IntakeOrder): TimelineEvent {
  const { occurred_at, provider, object_id, state, captured, refunded, disputed, currency } = payment;
  const asked = intake.checkouts[0]?.created_at ?? orderedAt(intake);
  return {
    at: Date.parse(occurred_at) < Date.parse(asked) ? asked : occurred_at,
    what: 'payment',
    detail: {
      payment_key: `${provider}/${object_id}`,
      state,
      captured,
      refunded,
      ...(disputed && { disputed }),
      currency,
    },
  };
}

export function refundEvent(refund: RefundRow): TimelineEvent {
  const { id, state, amount, currency, reason, provider_refund_id, error } = refund;
  return {
    at: refund.created_at,
    what: `refund_${state}`,
    detail: {
      refund: id,
      amount,
      currency,
      reason,
      ...(provider_refund_id !== null && { provider_refund_id }),
      ...(error !== null && { error }),
    },
  };
}

export function eventStep({ id, received_at, event_type, event_id, status }: OrderEvent): TimelineEvent {
  return { at: received_at, what: 'event', detail: { event_type, event_id, event: id, status } };
}

export function audited({ at, action, actor, subject, reason }: AuditRow): TimelineEvent {
  return { at, what: action, detail: { actor, subject, ...(reason !== null && { reason }) } };
}

/** In the order it happened. Stable: what has no time comes last. */
export function inOrder(events: readonly TimelineEvent[]): TimelineEvent[] {
  return [...events].sort((a, b) => timeOf(a) - timeOf(b));
}
