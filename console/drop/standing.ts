// What a claim has come to, of one seat or several, paid for or not. Pure.

import type { Claim, Seat } from './store.ts';

export type Standing =
  /** Held until it is paid. */
  | 'to_pay'
  /** Held, and its payment is on its way to us. */
  | 'paying'
  /** On its way to the ledger. */
  | 'writing'
  /** All that becomes of it is known, and at least one seat is a ticket. */
  | 'ticket'
  /** The ticket was taken back. */
  | 'voided'
  /** Money came, and buys nothing: it goes back. */
  | 'refund'
  /** The seat is on sale again. */
  | 'ended';

const FREED: ReadonlySet<string> = new Set(['released', 'expired', 'refused', 'discarded']);

export function standingOf(claim: Claim): Standing {
  const { order, status } = claim;
  if (order === undefined) return standingOfSeats([status]);
  if (order.status === 'refund_due' || order.status === 'refunded') return 'refund';
  if (order.status === 'paying') return 'paying';
  return standingOfSeats(order.claims.map(({ state }) => state));
}

function standingOfSeats(states: readonly string[]): Standing {
  if (states.includes('held')) return 'to_pay';
  const open = states.filter((state) => !FREED.has(state) && state !== 'committed' && state !== 'voided');
  if (open.length > 0) return 'writing';
  if (states.includes('committed')) return 'ticket';
  return states.includes('voided') ? 'voided' : 'ended';
}

/** The seats that are tickets. */
export function ticketsOf(claim: Claim): readonly Seat[] {
  return seatsOf(claim).filter(({ state }) => state === 'committed');
}

/** The seats that are held or on their way; those of an earlier try that ended are left out. */
export function openSeatsOf(claim: Claim): readonly Seat[] {
  return seatsOf(claim).filter(({ state }) => !FREED.has(state) && state !== 'voided');
}

function seatsOf(claim: Claim): readonly Seat[] {
  const { order, claim_id, resource_id, label = null, status, ticket_url } = claim;
  const alone = { claim_id, resource_id, label, state: status };
  return order?.claims ?? [ticket_url === undefined ? alone : { ...alone, ticket_url }];
}

/**
 * Late money buys the seats that were held where they are still free, and else others: the person is told. `perhaps`: of several
 * seats only the first of those that were held is known here. Undefined where the payment was in time.
 */
export function lateSeatsOf({
  order,
  claim_id,
  resource_id,
}: Claim): 'same' | 'other' | 'perhaps' | undefined {
  if (order === undefined || order.claims.some((seat) => seat.claim_id === claim_id)) return undefined;
  if (!order.claims.some((seat) => seat.resource_id === resource_id)) return 'other';
  return order.claims.length > 1 ? 'perhaps' : 'same';
}
