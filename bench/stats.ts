// From moments to numbers.

import type { Spent } from './cpu.ts';

/** One finished statement: when it ended and how long it took. */
export type Finished = { client: number; endUs: number; tookUs: number };

export type Timing = {
  /** Operations in the window that was counted. */
  ops: number;
  seconds: number;
  rate: number;
  p50_ms: number;
  p99_ms: number;
  /** How fast the first and the last tenth of what was done went. */
  first_tenth_rate?: number;
  last_tenth_rate?: number;
};

/** What one run of one way showed. */
export type Sample = Timing &
  Spent & {
    wal_bytes_per_op: number;
    /** How much of the pool was gone at the end: 1 is all of it. */
    sold_part?: number;
    /** HTTP: answers of 400 and above, and requests without an answer. */
    refused?: number;
    broken?: number;
    /** Where requests come at a fixed pace. */
    offered_rate?: number;
  };

const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;
const TENTHS = 10;
const TWO_SIDED_95 = 1.96;
/** A connection's first statements parse, plan and fill its caches; Postgres settles on a plan after five. */
const WARM_UP_STATEMENTS = 5;

/** `sorted` in rising order; `part` 0.5 is the median. */
export function quantile(sorted: readonly number[], part: number): number {
  if (sorted.length === 0) throw new Error('no values to take a quantile of');
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = quantile(sorted, 0.5);
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[sorted.length / 2 - 1] as number)) / 2;
}

/** Where the true median lies, in 95 of 100 runs: by rank, whatever the values are distributed like. */
export function medianRange(values: readonly number[]): [low: number, high: number] {
  const sorted = [...values].sort((a, b) => a - b);
  const width = TWO_SIDED_95 * Math.sqrt(sorted.length);
  const low = Math.max(0, Math.floor((sorted.length - width) / 2) - 1);
  return [sorted[low] as number, sorted[sorted.length - 1 - low] as number];
}

/**
 * Counts from the moment at which the last connection had warmed up. A run too short for that is counted whole.
 * `batch` operations each.
 */
export function summarise(finished: readonly Finished[], batch: number): Timing {
  if (finished.length === 0) throw new Error('not one statement finished');
  const inOrder = [...finished].sort((a, b) => a.endUs - b.endUs);
  const warmAt = warmMoment(inOrder);
  const warm = inOrder.filter((one) => one.endUs > warmAt);
  const isLongEnough = warm.length >= inOrder.length / 2;
  const counted = isLongEnough ? warm : inOrder;
  const firstStartUs = inOrder.reduce((least, one) => Math.min(least, one.endUs - one.tookUs), Infinity);
  const fromUs = isLongEnough ? warmAt : firstStartUs;
  const lastUs = (counted.at(-1) as Finished).endUs;
  const took = counted.map((one) => one.tookUs).sort((a, b) => a - b);
  const seconds = (lastUs - fromUs) / US_PER_SEC;
  const ops = counted.length * batch;
  return {
    ops,
    seconds,
    rate: ops / seconds,
    p50_ms: quantile(took, 0.5) / US_PER_MS,
    p99_ms: quantile(took, 0.99) / US_PER_MS,
    ...tenths(counted, fromUs, batch),
  };
}

function warmMoment(inOrder: readonly Finished[]): number {
  const seen = new Map<number, number>();
  let moment = 0;
  for (const { client, endUs } of inOrder) {
    const nth = (seen.get(client) ?? 0) + 1;
    seen.set(client, nth);
    if (nth <= WARM_UP_STATEMENTS) moment = endUs;
  }
  return moment;
}

function tenths(inOrder: readonly Finished[], fromUs: number, batch: number): Partial<Timing> {
  const size = Math.floor(inOrder.length / TENTHS);
  if (size === 0) return {};
  const rateBetween = (start: number, end: number): number => (size * batch * US_PER_SEC) / (end - start);
  const endOf = (index: number): number => (inOrder[index] as Finished).endUs;
  const beforeLast = endOf(inOrder.length - size - 1);
  return {
    first_tenth_rate: rateBetween(fromUs, endOf(size - 1)),
    last_tenth_rate: rateBetween(beforeLast, endOf(inOrder.length - 1)),
  };
}
