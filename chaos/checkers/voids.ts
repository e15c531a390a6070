// I17: a void is for ever: the tombstone comes before the seat is on sale again, and no ticket of it lives.

import type { PaidHistory } from '../paid_history.ts';
import type { Checker } from './lookup.ts';
import { keyOf, refundedOf } from './paid_lookup.ts';

export const voidsAreForEver: Checker = (history) => {
  const { paid } = history;
  if (paid === undefined) return [];
  const tombstones = new Map(paid.final.tombstones.map((one) => [one.claimId, one]));
  const live = new Set(history.final.tickets.map(({ claimId }) => claimId));
  return [
    ...paid.final.claims.flatMap(({ claimId, state, freedAt }) => {
      const tombstone = tombstones.get(claimId);
      if (state !== 'voided') return [];
      if (tombstone === undefined) return [`claim ${claimId} is voided, and the ledger has no tombstone`];
      return (freedAt ?? 0) < tombstone.voidedAt
        ? [`the seat of ${claimId} was free before its tombstone`]
        : [];
    }),
    ...[...tombstones.keys()]
      .filter((claimId) => live.has(claimId))
      .map((claimId) => `the ticket of ${claimId} lives and is void`),
    ...voidsWithoutReason(paid),
  ];
};

/** What was bought ends by a refund of all of it, a lost dispute or an operator's word, and by nothing else. */
function voidsWithoutReason(paid: PaidHistory): string[] {
  const asked = new Set(paid.voids.flatMap(({ claimIds }) => claimIds));
  const lost = new Set(
    paid.books.payments
      .filter((payment) => payment.isLost || refundedOf(payment) >= payment.amount)
      .map((payment) => keyOf(paid, payment)),
  );
  const orders = new Map(paid.final.orders.map((order) => [order.orderId, order.paymentKey]));
  return paid.final.claims
    .filter(
      ({ claimId, orderId, state }) =>
        state === 'voided' && !asked.has(claimId) && !lost.has(orders.get(orderId) ?? ''),
    )
    .map(({ claimId }) => `claim ${claimId} is voided without a reason`);
}
