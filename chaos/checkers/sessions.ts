// I16: no session of an order whose seats are free takes money, unless the order's grace ran out before Stripe answered.

import type { PaidHistory } from '../paid_history.ts';
import type { Checker } from './lookup.ts';
import { atOf, createSeatsOf } from './paid_lookup.ts';

export const freedOrdersTakeNoMoney: Checker = ({ paid }) =>
  paid === undefined ? [] : [...paidAfterTheEnd(paid), ...openAtRest(paid), ...strangers(paid)];

function paidAfterTheEnd(paid: PaidHistory): string[] {
  const seatsOf = createSeatsOf(paid);
  const orders = new Map(paid.final.orders.map((order) => [order.orderId, order]));
  return paid.orders.flatMap(({ orderId, sessionId, paidAt, isTurnedAway }) => {
    const order = orders.get(orderId);
    if (order === undefined || paidAt === null || isTurnedAway) return [];
    const freed = paid.final.claims
      .filter((claim) => claim.orderId === orderId && claim.replaces === null && claim.freedAt !== null)
      .filter(({ state }) => state === 'expired' || state === 'released');
    const inTime = freed.filter(({ freedAt }) => (freedAt ?? 0) < (order.graceUntil ?? 0));
    return inTime.length > 0 && inTime.every(({ freedAt }) => atOf(paid, freedAt ?? 0) < paidAt)
      ? [
          `session ${sessionId} took money after the seats of ${orderId} were free (${seatsOf(orderId).length} seats)`,
        ]
      : [];
  });
}

/** The closer goes on until Stripe has ended every session. */
function openAtRest({ books }: PaidHistory): string[] {
  return books.sessions
    .filter(({ status }) => status === 'open')
    .map(({ id, orderId }) => `session ${id} of ${orderId} is open at rest`);
}

/** Row first, Stripe second. */
function strangers({ books, final }: PaidHistory): string[] {
  const known = new Set(final.checkouts.map(({ sessionId }) => sessionId));
  return books.sessions
    .filter(({ id }) => !known.has(id))
    .map(({ id, orderId }) => `Stripe has the session ${id} of ${orderId}, and no checkout does`);
}
