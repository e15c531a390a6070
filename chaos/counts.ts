// Jepsen's four counts, kind by kind, and how long it took to come back. They say what happened; whether it was allowed
// is the checkers' business.

import { callKey, eventKey, factKey, groupBy, isTold, requestKey } from './checkers/lookup.ts';
import type { Fault, History } from './history.ts';

/**
 * lost: acknowledged and not there. duplicated: there more than once. unexpected: there and never asked for.
 * recovered: never acknowledged, and there all the same.
 */
export type Tally = {
  attempted: number;
  acknowledged: number;
  lost: number;
  duplicated: number;
  unexpected: number;
  recovered: number;
};

export type Counts = { claims: Tally; events: Tally; calls: Tally; operatorActions: number };

/** In milliseconds; null where nothing was measured. */
export type Spread = { n: number; p50: number; p99: number; max: number } | null;

export type Recovery = {
  /** From the heal of a fault to the next acknowledgement of the traffic it touched. */
  toFirstAck: Spread;
  /** From the heal of a fault to the first second with at least half the throughput from before the storm. */
  toHalfThroughput: Spread;
  /** Faults after which no acknowledgement is known. */
  neverRecovered: number;
  /** From the end of the storm to empty queues. */
  drainMs: number | null;
  byFault: Record<string, { count: number; toFirstAck: Spread }>;
};

type Entry = { key: string; isAcknowledged: boolean };

export const SECOND_MS = 1_000;

export function countsOf(history: History): Counts {
  const { claims, events, callEvents, operatorActions, final } = history;
  const creditsOf = groupBy(final.credits, eventKey);
  const facts = groupBy(events, factKey);
  const twice = [...facts.values()].filter(
    (tellers) => tellers.flatMap((teller) => creditsOf.get(eventKey(teller)) ?? []).length > 1,
  ).length;
  const requested = final.claims.filter((claim) => claim.requestId !== null);
  const eventTally = tally(
    events.map((event) => ({ key: eventKey(event), isAcknowledged: event.acknowledgedAt !== null })),
    final.events.map(eventKey),
  );
  return {
    claims: tally(
      claims.map((call) => ({ key: requestKey(call), isAcknowledged: isTold(call) })),
      requested.map(requestKey),
    ),
    events: { ...eventTally, duplicated: eventTally.duplicated + twice },
    calls: tally(
      callEvents.map((call) => ({ key: callKey(call), isAcknowledged: call.stored + call.noop > 0 })),
      final.calls.map(callKey),
    ),
    operatorActions: operatorActions.filter((call) => call.answer === 'done').length,
  };
}

function tally(asked: Entry[], there: string[]): Tally {
  const acknowledged = new Map<string, boolean>();
  for (const { key, isAcknowledged } of asked)
    acknowledged.set(key, isAcknowledged || (acknowledged.get(key) ?? false));
  const kept = groupBy(there, (key) => key);
  const keys = [...acknowledged];
  return {
    attempted: acknowledged.size,
    acknowledged: keys.filter(([, isAcknowledged]) => isAcknowledged).length,
    lost: keys.filter(([key, isAcknowledged]) => isAcknowledged && !kept.has(key)).length,
    duplicated: [...kept.values()].filter((rows) => rows.length > 1).length,
    unexpected: [...kept.keys()].filter((key) => !acknowledged.has(key)).length,
    recovered: keys.filter(([key, isAcknowledged]) => !isAcknowledged && kept.has(key)).length,
  };
}

/** When each acknowledgement reached a client, in order. */
export function acknowledgements({ claims, events, callEvents, operatorActions }: History): Float64Array {
  return Float64Array.from([
    ...claims.filter((call) => call.answer !== 'unknown').map((call) => call.endedAt),
    ...events.flatMap((event) => event.acknowledgedAt ?? []),
    ...callEvents.flatMap((call) => call.acknowledgedAt ?? []),
    ...operatorActions.filter((call) => call.answer !== 'unknown').map((call) => call.at),
  ]).sort();
}

/** Acknowledgements in each piece of `binMs` of the run. */
export function throughput(history: History, binMs: number): number[] {
  const at = acknowledgements(history);
  const counts = Array.from({ length: Math.ceil(((at.at(-1) ?? 0) + 1) / binMs) }, () => 0);
  for (const ms of at) {
    const bin = Math.floor(Math.max(0, ms) / binMs);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

export function recoveryOf(history: History): Recovery {
  const { faults, calmAt, drainedAt } = history;
  const at = acknowledgements(history);
  const usual = median(throughput(history, SECOND_MS).slice(1, Math.floor(history.stormAt / SECOND_MS)));
  const firstAcks = faults.flatMap((fault) => toFirstAck(fault) ?? []);
  return {
    toFirstAck: spreadOf(firstAcks),
    toHalfThroughput: spreadOf(faults.flatMap((fault) => toThroughput(at, fault.healedAt, usual / 2) ?? [])),
    neverRecovered: faults.filter((fault) => fault.recoveredAt === null).length,
    drainMs: drainedAt === null ? null : drainedAt - calmAt,
    byFault: Object.fromEntries(
      [...groupBy(faults, (fault) => fault.name)]
        .sort(([one], [other]) => one.localeCompare(other))
        .map(([name, own]) => [
          name,
          { count: own.length, toFirstAck: spreadOf(own.flatMap((fault) => toFirstAck(fault) ?? [])) },
        ]),
    ),
  };
}

const toFirstAck = ({ recoveredAt, healedAt }: Fault): number | undefined =>
  recoveredAt === null ? undefined : Math.max(0, recoveredAt - healedAt);

/** How long after `from` the first second begins in which that many acknowledgements came; undefined: none did. */
function toThroughput(at: Float64Array, from: number, wanted: number): number | undefined {
  if (wanted <= 0) return undefined;
  let start = at.findIndex((ms) => ms >= from);
  if (start < 0) return undefined;
  for (let end = start; end < at.length; end++) {
    while ((at[end] ?? 0) - (at[start] ?? 0) > SECOND_MS) start++;
    if (end - start + 1 >= wanted) return Math.max(0, (at[start] ?? from) - from);
  }
  return undefined;
}

export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return null;
  const sorted = [...values].sort((one, other) => one - other);
  // The nearest rank: with few values p99 is the largest, and says no more than it knows.
  const rank = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { n: sorted.length, p50: rank(0.5), p99: rank(0.99), max: rank(1) };
}

const median = (values: readonly number[]): number => spreadOf(values)?.p50 ?? 0;
