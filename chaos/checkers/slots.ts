// I4 and I5: how many slots are sold, and that none appears, vanishes or is told away.

import type { History } from '../history.ts';
import { type Checker, type FinalClaim, groupBy, isUnrequested, repeated } from './lookup.ts';

/** I4: a pool never sells more than it has. */
export const soldWithinCapacity: Checker = ({ pools, final }) => {
  const live = groupBy(
    final.claims.filter((claim) => claim.live),
    (claim) => claim.poolId,
  );
  const tickets = groupBy(final.tickets, (ticket) => ticket.poolId);
  return pools.flatMap(({ poolId, capacity }) => {
    const claims = live.get(poolId)?.length ?? 0;
    const confirmed = tickets.get(poolId)?.length ?? 0;
    return [
      ...(claims > capacity ? [`pool ${poolId} has ${claims} live claims for ${capacity} slots`] : []),
      ...(confirmed > capacity ? [`pool ${poolId} has ${confirmed} tickets for ${capacity} slots`] : []),
    ];
  });
};

/** I5: available + reserved + consumed = capacity, each slot as its claim says, and "sold out" only when it is true. */
export const slotsAreConserved: Checker = (history) => [
  ...countsThatDiffer(history),
  ...slotsUnlikeTheirClaims(history),
  ...falselySoldOut(history),
];

function countsThatDiffer({ pools, final }: History): string[] {
  const slots = groupBy(final.slots, (slot) => slot.poolId);
  const known = new Set(pools.map((pool) => pool.poolId));
  return [
    ...pools
      .map(({ poolId, capacity }) => ({ poolId, capacity, have: slots.get(poolId)?.length ?? 0 }))
      .filter(({ capacity, have }) => have !== capacity)
      .map(({ poolId, capacity, have }) => `pool ${poolId} has ${have} slots instead of ${capacity}`),
    ...[...slots.keys()]
      .filter((poolId) => !known.has(poolId))
      .map((poolId) => `pool ${poolId} was never made`),
    ...repeated(final.slots, (slot) => slot.slotId).map(([slotId]) => `slot ${slotId} is there twice`),
  ];
}

function slotsUnlikeTheirClaims({ final }: History): string[] {
  const live = groupBy(
    final.claims.filter((claim) => claim.live),
    (claim) => claim.slotId,
  );
  const heldByHand = new Set(
    [...final.deadLetters, ...final.queued].map((message) => message.identity).filter((id) => id !== null),
  );
  const there = new Set(final.slots.map((slot) => slot.slotId));
  return [
    ...final.slots.flatMap(({ slotId, status }) => {
      const [claim] = live.get(slotId) ?? [];
      const isByHand = claim === undefined && status === 'RESERVED' && heldByHand.has(slotId);
      return isByHand || statusFor(claim) === status
        ? []
        : [`slot ${slotId} is ${status} and its claim is ${claim?.state ?? 'none'}`];
    }),
    ...[...live.keys()]
      .filter((slotId) => !there.has(slotId))
      .map((slotId) => `slot ${slotId} has a live claim and is gone`),
  ];
}

const statusFor = (claim: FinalClaim | undefined): string => {
  if (claim === undefined) return 'AVAILABLE';
  return claim.state === 'committed' ? 'CONSUMED' : 'RESERVED';
};

/** Each request takes at most what it asks for: with less asked for by then than there are slots, some were left. */
function falselySoldOut({ pools, claims, final }: History): string[] {
  const byPool = groupBy(claims, (call) => call.poolId);
  return pools.flatMap(({ poolId, capacity }) => {
    const calls = byPool.get(poolId) ?? [];
    const starts = Float64Array.from(
      calls.flatMap((call) => Array.from({ length: call.quantity ?? 1 }, () => call.startedAt)),
    ).sort();
    const unrequested = final.claims.filter(
      (claim) => claim.poolId === poolId && isUnrequested(claim),
    ).length;
    return calls
      .filter((call) => call.answer === 'sold_out')
      .map((call) => ({
        call,
        others: countUpTo(starts, call.endedAt) - (call.quantity ?? 1) + unrequested,
      }))
      .filter(({ others }) => others < capacity)
      .map(
        ({ call, others }) =>
          `request ${call.requestId} was told "sold out" when only ${others} others had asked for ${capacity} slots`,
      );
  });
}

/** How many of the sorted numbers are at most `limit`. */
function countUpTo(sorted: Float64Array, limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? Number.POSITIVE_INFINITY) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
