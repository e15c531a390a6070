// I18: an order has all its seats or none, and one payment.

import type { Checker } from './lookup.ts';
import { createSeatsOf } from './paid_lookup.ts';

export const ordersAreWhole: Checker = ({ claims: asked, paid }) => {
  if (paid === undefined) return [];
  const seatsOf = createSeatsOf(paid);
  const known = new Set(paid.final.orders.map(({ orderId }) => orderId));
  const lost = paid.orders
    .filter(({ orderId }) => !known.has(orderId))
    .map(({ orderId }) => `order ${orderId} was promised, and is not there`);
  const claims = new Map(paid.final.claims.map((claim) => [claim.claimId, claim.orderId]));
  const strays = paid.orders.flatMap(({ orderId, claimIds }) =>
    claimIds
      .filter((claimId) => claims.get(claimId) !== orderId)
      .map((claimId) => `claim ${claimId} was promised as a part of ${orderId}, and is not`),
  );
  const seatsAskedFor = new Map(
    asked.flatMap(({ told, quantity = 1 }) => told.map(({ claimId }) => [claimId, quantity] as const)),
  );
  return [
    ...lost,
    ...strays,
    ...paid.orders
      .filter(({ orderId, claimIds }) => claimIds.length !== seatsAskedFor.get(orderId))
      .map(
        ({ orderId, claimIds }) =>
          `order ${orderId} has ${claimIds.length} seats, and ${seatsAskedFor.get(orderId)} were asked for`,
      ),
    ...paid.final.orders.flatMap(({ orderId, seats: count, paymentKey }) => {
      const seats = seatsOf(orderId);
      const ended = seats.filter(({ live, state }) => !live && state !== 'voided');
      const bought = paid.final.decisions.filter(
        (one) => one.orderId === orderId && one.decision === 'funds',
      );
      return [
        ...(seats.length === count
          ? []
          : [`order ${orderId} has ${seats.length} claims instead of ${count}`]),
        ...(ended.length === 0 || ended.length === seats.length
          ? []
          : [`order ${orderId} ended in part: ${seats.map(({ state }) => state).join(', ')}`]),
        ...(paymentKey !== null && ended.length > 0
          ? [`order ${orderId} was paid and ended as ${ended.map(({ state }) => state).join(', ')}`]
          : []),
        ...(bought.length > 1 ? [`order ${orderId} was bought by ${bought.length} payments`] : []),
        ...(bought.length === 1 && bought[0]?.paymentKey !== paymentKey
          ? [`order ${orderId} names ${paymentKey}, and ${bought[0]?.paymentKey} bought it`]
          : []),
      ];
    }),
  ];
};
