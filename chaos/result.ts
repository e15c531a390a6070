// What is left of a run when its history, which is too large, is gone: the raw result, and what the report needs of it.

import type { Raw } from '../bench/summaries.ts';
import type { HoldRow } from './checkers/holds.ts';
import type { NeighbourRow } from './checkers/neighbours.ts';
import { type Counts, type Recovery, type Spread, throughput } from './counts.ts';
import type { Fault, History } from './history.ts';
import type { PromiseName, Verdict, Violation } from './judge.ts';
import { type Picture, pictureOf } from './plot.ts';

export type RunResult = {
  seed: number;
  minutes: number;
  counts: Counts;
  recovery: Recovery;
  violations: Record<string, number>;
  examples: Violation[];
  faults: Pick<Fault, 'name' | 'target' | 'startedAt' | 'healedAt'>[];
  lostLeases: number;
  deadLetters: number;
  stormAt: number;
  calmAt: number;
  throughput: { binMs: number; counts: number[] };
  /** Left out by runs from before I13. */
  neighbours?: NeighbourRow[];
  /** Left out by runs from before I15. */
  holds?: HoldRow[];
};

/** One run as the report shows it: faults are counted by their name. */
export type RunSummary = Pick<
  RunResult,
  | 'seed'
  | 'minutes'
  | 'counts'
  | 'violations'
  | 'examples'
  | 'lostLeases'
  | 'deadLetters'
  | 'neighbours'
  | 'holds'
> & {
  at: string;
  commit: string;
  faults: Record<string, number>;
  recovery: Pick<Recovery, 'neverRecovered' | 'drainMs'> & {
    toFirstAck: Spread;
    toHalfThroughput: Spread;
    byFault: Record<string, { p50: number; max: number }>;
  };
};

export type ChaosSummary = { runs: RunSummary[]; picture: Picture | null };

/** Fine enough to see a fault of a second, coarse enough to be no noise. */
const BIN_MS = 500;
/** Of each promise: the rest says the same again. */
const EXAMPLES_PER_PROMISE = 3;

export function resultOf(history: History, verdict: Verdict): RunResult {
  const { seed, minutes, stormAt, calmAt, faults, lostLeases, final } = history;
  return {
    seed,
    minutes,
    counts: verdict.counts,
    recovery: verdict.recovery,
    violations: countViolations(verdict.violations),
    examples: examplesOf(verdict.violations),
    faults: faults.map(({ name, target, startedAt, healedAt }) => ({
      name,
      target,
      startedAt: Math.round(startedAt),
      healedAt: Math.round(healedAt),
    })),
    lostLeases: lostLeases.length,
    deadLetters: final.deadLetters.length + final.archivedLetters.length,
    stormAt: Math.round(stormAt),
    calmAt: Math.round(calmAt),
    throughput: { binMs: BIN_MS, counts: throughput(history, BIN_MS) },
    neighbours: verdict.neighbours.map(roundedRow),
    holds: verdict.holds.map(roundedHold),
  };
}

/** Of the runs of one version of the product, a seed each: of a seed that ran twice the later run counts. */
export function summaryOfRuns(raw: readonly Raw<RunResult>[]): ChaosSummary {
  const bySeed = new Map(raw.map((run) => [run.result.seed, run]));
  const runs = [...bySeed.values()].sort((one, other) => one.result.seed - other.result.seed);
  return { runs: runs.map(summaryOfRun), picture: pictureOf(runs.map(({ result }) => result)) ?? null };
}

function summaryOfRun({ at, commit, result }: Raw<RunResult>): RunSummary {
  const {
    seed,
    minutes,
    counts,
    violations,
    examples,
    lostLeases,
    deadLetters,
    recovery,
    neighbours,
    holds,
  } = result;
  const byFault = Object.entries(recovery.byFault).map(([name, { count, toFirstAck }]) => ({
    name,
    count,
    toFirstAck: rounded(toFirstAck),
  }));
  return {
    ...{ seed, minutes, at, commit, counts, violations, examples, lostLeases, deadLetters },
    ...(neighbours && { neighbours }),
    ...(holds && { holds }),
    faults: Object.fromEntries(byFault.map(({ name, count }) => [name, count])),
    recovery: {
      toFirstAck: rounded(recovery.toFirstAck),
      toHalfThroughput: rounded(recovery.toHalfThroughput),
      neverRecovered: recovery.neverRecovered,
      drainMs: recovery.drainMs === null ? null : Math.round(recovery.drainMs),
      byFault: Object.fromEntries(
        byFault.flatMap(({ name, toFirstAck }) =>
          toFirstAck === null ? [] : [[name, { p50: toFirstAck.p50, max: toFirstAck.max }]],
        ),
      ),
    },
  };
}

/** A millisecond is all that anybody reads. */
function rounded(spread: Spread): Spread {
  if (spread === null) return null;
  const { n, p50, p99, max } = spread;
  return { n, p50: Math.round(p50), p99: Math.round(p99), max: Math.round(max) };
}

function roundedRow({ p99, quietP99, limit, ...row }: NeighbourRow): NeighbourRow {
  const round = (ms: number | null): number | null => (ms === null ? null : Math.round(ms));
  return { ...row, p99: round(p99), quietP99: round(quietP99), limit: round(limit) };
}

const roundedHold = ({ late, lateUnexcused, pastMs, ...row }: HoldRow): HoldRow => ({
  ...row,
  pastMs: pastMs === null ? null : Math.round(pastMs),
  late: rounded(late),
  lateUnexcused: rounded(lateUnexcused),
});

export function countViolations(violations: readonly Violation[]): Record<string, number> {
  const counts: Partial<Record<PromiseName, number>> = {};
  for (const { promise } of violations) counts[promise] = (counts[promise] ?? 0) + 1;
  return counts;
}

export function examplesOf(violations: readonly Violation[]): Violation[] {
  const seen: Partial<Record<PromiseName, number>> = {};
  return violations.filter(({ promise }) => {
    seen[promise] = (seen[promise] ?? 0) + 1;
    return seen[promise] <= EXAMPLES_PER_PROMISE;
  });
}

/** Everything that a client was promised in this run. */
export const acknowledgedIn = ({ counts }: Pick<RunSummary, 'counts'>): number =>
  counts.claims.acknowledged +
  counts.events.acknowledged +
  counts.calls.acknowledged +
  counts.operatorActions;
