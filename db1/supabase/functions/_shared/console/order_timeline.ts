// What happened to an order, from both databases, in the order it happened. Pure.

import type { AuditRow } from './audit.ts';
import type { TimelineEvent } from './claims.ts';
import type { IntakeOrder, LedgerOrder, OrderClaim } from './order_shapes.ts';

/** `ledger` is undefined while DB2 does not answer; `audit` is what operators did, in both databases. */
export function orderTimeline(
  intake: IntakeOrder,
  ledger: LedgerOrder | undefined,
  audit: readonly AuditRow[],
): TimelineEvent[] {
  const events = [
    ...intakeEvents(intake),
    ...(ledger ? ledgerEvents(ledger) : [UNREACHABLE]),
    ...audit.map(audited),
  ];
  // Stable: what has no time comes last.
  return events.sort((a, b) => timeOf(a) - timeOf(b));
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
  return [
    {
      at: orderedAt(intake),
      what: 'held',
      detail: { pool_id, user_id, seats, amount, currency, hold_until },
    },
    ...checkouts.map(({ created_at, n, state, session_id, attempts }) => ({
      at: created_at,
      what: 'checkout',
      detail: { n, state, session_id, ...(attempts > 0 && { attempts }) },
    })),
    ...decisions.map(({ decided_at, decision, reason, payment_key, amount: paid, is_own }) => ({
      at: decided_at,
      what: `decided_${decision}`,
      detail: { reason, payment_key, amount: paid, ...(!is_own && { is_own }) },
    })),
    ...together(late, ({ claimed_at }) => claimed_at, 'other_seats'),
    ...together(
      ended(claims),
      ({ ended_at }) => ended_at,
      ({ state }) => state,
    ),
  ];
}

const ended = (claims: readonly OrderClaim[]): OrderClaim[] =>
  claims.filter(({ ended_at }) => ended_at !== null);

/** Claims that took the same step at the same moment are one event. */
function together(
  claims: readonly OrderClaim[],
  at: (claim: OrderClaim) => string | null,
  what: string | ((claim: OrderClaim) => string),
): TimelineEvent[] {
  const groups = new Map<string, OrderClaim[]>();
  for (const claim of claims) {
    const key = `${at(claim)} ${typeof what === 'string' ? what : what(claim)} ${claim.end_reason}`;
    groups.set(key, [...(groups.get(key) ?? []), claim]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const reason = typeof what === 'string' ? undefined : first.end_reason;
    return {
      at: at(first),
      what: typeof what === 'string' ? what : what(first),
      detail: { ...(reason && { reason }), seats: group.length, claims: group.map(nameOf) },
    };
  });
}

const nameOf = ({ label, claim_id }: OrderClaim): string => label ?? claim_id;

function ledgerEvents({ payments, events, outbox, refunds, tickets, voided }: LedgerOrder): TimelineEvent[] {
  return [
    ...events.map(({ received_at, event_type, event_id, status }) => ({
      at: received_at,
      what: 'event',
      detail: { event_type, event_id, status },
    })),
    ...payments.map(
      ({ occurred_at, provider, object_id, state, captured, refunded, disputed, currency }) => ({
        at: occurred_at,
        what: 'payment',
        detail: {
          payment_key: `${provider}/${object_id}`,
          state,
          captured,
          refunded,
          ...(disputed && { disputed }),
          currency,
        },
      }),
    ),
    ...outbox
      .filter(({ state }) => state !== 'done')
      .map(({ created_at, kind, attempts, error }) => ({
        at: created_at,
        what: `${kind}_waits`,
        detail: { attempts, ...(error !== null && { error }) },
      })),
    ...refunds.map((refund) => ({
      at: refund.created_at,
      what: `refund_${refund.state}`,
      detail: {
        refund: refund.id,
        amount: refund.amount,
        currency: refund.currency,
        reason: refund.reason,
        ...(refund.provider_refund_id !== null && { provider_refund_id: refund.provider_refund_id }),
        ...(refund.error !== null && { error: refund.error }),
      },
    })),
    ...tickets.map(({ confirmed_at, claim_id, resource_id }) => ({
      at: confirmed_at,
      what: 'ticket',
      detail: { claim_id, resource_id },
    })),
    ...tickets.flatMap(({ used_at, claim_id }) =>
      used_at === null ? [] : [{ at: used_at, what: 'used', detail: { claim_id } }],
    ),
    ...voided.map(({ voided_at, claim_id, cause, confirmed_at }) => ({
      at: voided_at,
      what: 'ticket_voided',
      detail: { claim_id, cause, was_ticket: confirmed_at !== null },
    })),
  ];
}

function audited({ at, action, actor, subject, reason }: AuditRow): TimelineEvent {
  return { at, what: action, detail: { actor, subject, ...(reason !== null && { reason }) } };
}
