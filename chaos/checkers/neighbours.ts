// I13: a neighbour's trouble is not mine. While a neighbour is hostile and nothing else is wrong, a healthy one has no
// failure, and its p99 is at most the greater of three times its quiet p99 and 250 ms.

import { spreadOf } from '../counts.ts';
import type { Fault, HealthyCall, History } from '../history.ts';
import { isNeighbour } from '../options.ts';
import { type Checker, groupBy } from './lookup.ts';

/** A claim until its answer, until its ticket; an event until its answer, until its effect. */
export const MEASURES = ['claim', 'ticket', 'event', 'effect'] as const;
export type Measure = (typeof MEASURES)[number];

/** What the healthy one met beside one kind of neighbour, over all its windows. Times in milliseconds. */
export type NeighbourRow = {
  neighbour: string;
  measure: Measure;
  requests: number;
  failures: number;
  /** What the first failed request got. */
  failedWith: string | null;
  p99: number | null;
  quietP99: number | null;
  limit: number | null;
  verdict: 'kept' | 'broken' | 'not judged';
  /** Why p99 is not judged. */
  why: string | null;
};

const TIMES_QUIET = 3;
const ALWAYS_ALLOWED_MS = 250;
/** With fewer, a p99 is only the slowest request. */
const MIN_REQUESTS = 100;
/** After another fault was healed and its traffic acknowledged again: queues, breakers and caches come to rest. */
const SETTLE_MS = 5_000;
/**
 * What a worker held when it was killed waits for the end of its lease, and that is how it is meant: here tickets and effects
 * may be late, and only must not fail.
 */
const LATE_BY_DESIGN: ReadonlySet<string> = new Set(['neighbour-killed-workers']);

type Window = { from: number; to: number };
type Sample = { tookMs: number; failure: string | null };

export const neighboursDoNoHarm: Checker = (history) =>
  neighbourRows(history)
    .filter(({ verdict }) => verdict === 'broken')
    .map(brokenInWords);

function brokenInWords({
  neighbour,
  measure,
  requests,
  failures,
  failedWith,
  p99,
  limit,
}: NeighbourRow): string {
  const beside = `beside ${neighbour} a healthy ${measure}`;
  if (failures > 0) return `${beside} failed ${failures} times of ${requests}: ${failedWith}`;
  return `${beside} took ${Math.round(p99 ?? 0)} ms (p99 of ${requests}) instead of at most ${Math.round(limit ?? 0)} ms`;
}

/** A row for each kind of neighbour that happened and each measure. */
export function neighbourRows(history: History): NeighbourRow[] {
  const { faults, quietAt, stormAt } = history;
  const quiet: Window[] = quietAt === undefined ? [] : [{ from: quietAt, to: stormAt }];
  const disturbed = faults.filter(({ name }) => !isNeighbour(name)).map(disturbanceOf);
  const neighbours = groupBy(
    faults.filter(({ name }) => isNeighbour(name)),
    ({ name }) => name,
  );
  return [...neighbours].flatMap(([neighbour, own]) => {
    const windows = own.flatMap(({ startedAt, healedAt }) =>
      without({ from: startedAt, to: healedAt }, disturbed),
    );
    return MEASURES.map((measure) =>
      rowOf(neighbour, measure, samplesIn(history, windows, measure), samplesIn(history, quiet, measure)),
    );
  });
}

/** A fault that is not a neighbour's makes all clients wait, until some time after it. */
function disturbanceOf({ startedAt, healedAt, recoveredAt }: Fault): Window {
  const overAt = recoveredAt === null ? Number.POSITIVE_INFINITY : Math.max(healedAt, recoveredAt);
  return { from: startedAt, to: overAt + SETTLE_MS };
}

function without(window: Window, disturbed: readonly Window[]): Window[] {
  let left = [window];
  for (const { from, to } of disturbed)
    left = left
      .flatMap((piece) => [
        { from: piece.from, to: Math.min(piece.to, from) },
        { from: Math.max(piece.from, to), to: piece.to },
      ])
      .filter((piece) => piece.to > piece.from);
  return left;
}

function rowOf(
  neighbour: string,
  measure: Measure,
  beside: readonly Sample[],
  quiet: readonly Sample[],
): NeighbourRow {
  const failed = beside.filter(({ failure }) => failure !== null);
  const p99 = p99Of(beside);
  const quietP99 = p99Of(quiet);
  const limit = quietP99 === null ? null : Math.max(TIMES_QUIET * quietP99, ALWAYS_ALLOWED_MS);
  const why = whyNot(neighbour, measure, beside, quiet);
  const isSlow = why === null && p99 !== null && limit !== null && p99 > limit;
  const isBroken = failed.length > 0 || isSlow;
  return {
    ...{ neighbour, measure, requests: beside.length, failures: failed.length },
    failedWith: failed[0]?.failure ?? null,
    ...{ p99, quietP99, limit, why },
    verdict: isBroken ? 'broken' : why === null ? 'kept' : 'not judged',
  };
}

function whyNot(
  neighbour: string,
  measure: Measure,
  beside: readonly Sample[],
  quiet: readonly Sample[],
): string | null {
  if (LATE_BY_DESIGN.has(neighbour) && (measure === 'ticket' || measure === 'effect'))
    return 'what a killed worker held waits for the end of its lease';
  if (quiet.length < MIN_REQUESTS) return `${quiet.length} quiet requests are fewer than ${MIN_REQUESTS}`;
  if (beside.length < MIN_REQUESTS) return `${beside.length} requests are fewer than ${MIN_REQUESTS}`;
  return null;
}

const p99Of = (samples: readonly Sample[]): number | null =>
  spreadOf(samples.map(({ tookMs }) => tookMs))?.p99 ?? null;

/** Each request that was due in a window; one that had not come to its end counts as long as it had waited by then. */
function samplesIn(history: History, windows: readonly Window[], measure: Measure): Sample[] {
  const kind = measure === 'claim' || measure === 'ticket' ? 'claim' : 'event';
  const calls = history.healthy.filter((call) => call.kind === kind);
  return windows.flatMap(({ from, to }) =>
    calls.filter(({ at }) => at >= from && at < to).flatMap((call) => sampleOf(call, measure === kind, to)),
  );
}

function sampleOf(call: HealthyCall, isAnswer: boolean, windowEndsAt: number): Sample[] {
  const { at, answer, answeredAt, carriedAt } = call;
  const took = (endedAt: number): number => Math.min(endedAt, windowEndsAt) - at;
  if (isAnswer)
    return [
      {
        tookMs: took(answeredAt),
        failure: answer !== 'done' && answeredAt <= windowEndsAt ? answer : null,
      },
    ];
  // A request that was not taken has no ticket to wait for; that it was not is told by its answer.
  if (answer !== 'done') return [];
  const failure = carriedAt === null ? 'it never came' : null;
  return [{ tookMs: took(carriedAt ?? Number.POSITIVE_INFINITY), failure }];
}
