// I15: no seat is held longer than its hold and a bound: a second where the buyer never asked to pay, one call to Stripe where
// it did, the grace where Stripe does not answer. What the intake and the workers were kept from doing meanwhile is excused.

import { type Spread, spreadOf } from '../counts.ts';
import type { Fault, History } from '../history.ts';
import type { PaidHistory } from '../paid_history.ts';
import type { Checker } from './lookup.ts';
import { atOf, type Order } from './paid_lookup.ts';

/** A worker looks twice a second. */
const LOOK_MS = 1_000;
/** The longest call to Stripe. */
const CALL_MS = 10_000;
/** Two workers, two servers, two databases and all clients share two cores: what is due waits for its turn. */
export const BUSY_MS = 3_000;
/** From the heal of a fault until workers have noticed: reconnecting, the lease of a dead worker. */
const AFTER_FAULT_MS = 6_000;

/** How an order came to its end without being bought. */
export type HoldKind = 'never asked to pay' | 'session ended' | 'grace ran out';

export type HoldRow = {
  kind: HoldKind;
  count: number;
  /** From the end of the hold until the seats were free, in milliseconds: as it was, and without what faults excuse. */
  late: Spread;
  lateUnexcused: Spread;
  boundMs: number;
  /** By how much the longest was held past its bound, without what faults excuse; below 0: all were free before. Null: none. */
  pastMs: number | null;
  /** How many were held past it, by however little. */
  beyond: number;
};

type Ended = { order: Order; kind: HoldKind; lateMs: number; unexcusedMs: number; boundMs: number };

/** What keeps the intake from ending holds. */
const isInTheWay = ({ name, target }: Fault): boolean =>
  /db1|worker|rolling-restart|neighbour-killed/.test(`${name} ${target}`) || target === 'all';

export const holdsEndInTime: Checker = (history) => {
  const { paid } = history;
  if (paid === undefined) return [];
  return [
    ...paid.final.claims
      .filter(({ state }) => state === 'held')
      .map(({ claimId }) => `claim ${claimId} is held at rest`),
    ...endedHolds(history, paid)
      .filter(({ unexcusedMs, boundMs }) => unexcusedMs > boundMs + BUSY_MS)
      .map(
        ({ order, kind, lateMs, unexcusedMs, boundMs }) =>
          `order ${order.orderId} (${kind}) held its seats ${Math.round(lateMs)} ms too long, ${Math.round(unexcusedMs)} of them without a fault; the bound is ${boundMs}`,
      ),
  ];
};

/** The figure over the run. */
export function holdRows(history: History): HoldRow[] {
  const { paid } = history;
  if (paid === undefined) return [];
  const all = endedHolds(history, paid);
  return (['never asked to pay', 'session ended', 'grace ran out'] as const).map((kind) => {
    const own = all.filter((one) => one.kind === kind);
    return {
      kind,
      count: own.length,
      late: spreadOf(own.map(({ lateMs }) => lateMs)),
      lateUnexcused: spreadOf(own.map(({ unexcusedMs }) => unexcusedMs)),
      boundMs: Math.max(0, ...own.map(({ boundMs }) => boundMs)),
      pastMs: own.length === 0 ? null : Math.max(...own.map(pastOf)),
      beyond: own.filter((one) => pastOf(one) > 0).length,
    };
  });
}

const pastOf = ({ unexcusedMs, boundMs }: Ended): number => unexcusedMs - boundMs;

/** Of all kinds of holds the one that was held longest, measured by its bound; undefined where none ended. */
export function heldLongest(rows: readonly HoldRow[]): (HoldRow & { pastMs: number }) | undefined {
  const ended = rows.flatMap((row) => (row.pastMs === null ? [] : [{ ...row, pastMs: row.pastMs }]));
  return ended.sort((one, other) => other.pastMs - one.pastMs)[0];
}

function endedHolds(history: History, paid: PaidHistory): Ended[] {
  const excused = history.faults
    .filter(isInTheWay)
    .map(
      ({ startedAt, healedAt, recoveredAt }) =>
        [startedAt, (recoveredAt ?? healedAt) + AFTER_FAULT_MS] as const,
    );
  const asked = new Set(paid.final.checkouts.map(({ orderId }) => orderId));
  const graceMs = new Map(
    history.pools.map(({ poolId, payment }) => [poolId, (payment?.graceSec ?? 0) * 1_000]),
  );
  return paid.final.orders.flatMap((order) => {
    const { orderId, poolId, graceUntil } = order;
    // Of an order that was bought late only the grace is left.
    const holdUntil = order.holdUntil ?? (graceUntil ?? 0) - (graceMs.get(poolId) ?? 0);
    const freed = paid.final.claims.filter(
      (claim) => claim.orderId === orderId && claim.replaces === null && claim.freedAt !== null,
    );
    const [first] = freed.filter(({ state }) => state === 'expired' || state === 'released');
    if (first?.freedAt == null || graceUntil === null) return [];
    const from = atOf(paid, holdUntil);
    const to = atOf(paid, first.freedAt);
    const kind = !asked.has(orderId)
      ? 'never asked to pay'
      : first.freedAt < graceUntil
        ? 'session ended'
        : 'grace ran out';
    // None where a session had been paid: its hold ends when its payment is decided, which may be after the grace.
    const leftMs = Math.max(0, graceUntil - holdUntil);
    const boundMs =
      kind === 'never asked to pay'
        ? LOOK_MS
        : Math.min(kind === 'session ended' ? CALL_MS : Number.POSITIVE_INFINITY, leftMs) + LOOK_MS;
    return [{ order, kind, lateMs: to - from, unexcusedMs: outside(from, to, excused), boundMs }];
  });
}

/** How much of the time from `from` to `to` none of the intervals covers. */
function outside(from: number, to: number, intervals: readonly (readonly [number, number])[]): number {
  const inOrder = intervals.toSorted(([one], [other]) => one - other);
  let at = from;
  let left = 0;
  for (const [begin, end] of inOrder) {
    if (begin > at) left += Math.max(0, Math.min(begin, to) - at);
    at = Math.max(at, end);
    if (at >= to) return left;
  }
  return left + Math.max(0, to - at);
}
