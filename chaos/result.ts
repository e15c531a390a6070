// What is left of a run when its history, which is too large, is gone: the raw result, and what the report needs of it.

import { type Raw, refuseKept } from '../bench/summaries.ts';
import type { HoldRow } from './checkers/holds.ts';
import type { NeighbourRow } from './checkers/neighbours.ts';
import { type Counts, type Recovery, type Spread, throughput } from './counts.ts';
import { type Coverage, coverageOf, sumOfCoverage } from './coverage.ts';
import type { Fault, History } from './history.ts';
import type { PromiseName, Verdict, Violation } from './judge.ts';
import { clearer, type Picture, pictureOf } from './plot.ts';

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
  /** Left out by runs from before it was counted. */
  coverage?: Coverage;
};

/** One run as the report shows it. */
export type RunSummary = Pick<
  RunResult,
  'seed' | 'minutes' | 'counts' | 'violations' | 'examples' | 'lostLeases' | 'deadLetters'
> & {
  at: string;
  commit: string;
  faults: { all: number; crashes: number; cuts: number };
  recovery: Pick<Recovery, 'neverRecovered' | 'drainMs'> & { toFirstAck: Spread; toHalfThroughput: Spread };
};

/** Over all runs: how often it happened, and the time to the first acknowledgement in the run in which that was worst. */
export type FaultRow = { times: number; p50: number; max: number };

/**
 * All runs of one version of the product. What has a row for each kind of something is told once for all runs, of the worst run:
 * a summary of many runs has to stay small.
 */
export type ChaosSummary = {
  runs: RunSummary[];
  faults: Record<string, FaultRow>;
  neighbours: NeighbourRow[];
  holds: HoldRow[];
  /** Null where a run did not count it. */
  coverage: Coverage | null;
  picture: Picture | null;
};

/** Faults after which something had to start anew, and faults of a wire. */
const isCrash = (name: string): boolean => /^(kill|stop|power)-/.test(name);
const isCut = (name: string): boolean => /^(cut|half-open)/.test(name);

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
    coverage: coverageOf(history),
  };
}

export function summaryOfRun(raw: Raw<RunResult>): ChaosSummary {
  const { result } = raw;
  return {
    runs: [rowOf(raw)],
    faults: faultRows(result),
    neighbours: worstOf(result.neighbours ?? [], kindOfNeighbour, worseNeighbour),
    holds: worstOf(result.holds ?? [], kindOfHold, worseHold),
    coverage: result.coverage ?? null,
    picture: pictureOf(result) ?? null,
  };
}

/** Both as one. Refuses a seed that both have: its requests would count twice. */
export function joinRuns(kept: ChaosSummary, added: ChaosSummary): ChaosSummary {
  refuseKept(seedsOf(kept), ...seedsOf(added));
  return {
    runs: [...kept.runs, ...added.runs].sort((one, other) => one.seed - other.seed),
    faults: joinFaults(kept.faults, added.faults),
    neighbours: worstOf([...kept.neighbours, ...added.neighbours], kindOfNeighbour, worseNeighbour),
    holds: worstOf([...kept.holds, ...added.holds], kindOfHold, worseHold),
    coverage: kept.coverage && added.coverage && sumOfCoverage([kept.coverage, added.coverage]),
    picture: clearer(kept.picture, added.picture),
  };
}

export const seedsOf = ({ runs }: Pick<ChaosSummary, 'runs'>): number[] => runs.map(({ seed }) => seed);

const kindOfNeighbour = ({ neighbour, measure }: NeighbourRow): string => `${neighbour} ${measure}`;
const kindOfHold = ({ kind }: HoldRow): string => kind;

function rowOf({ at, commit, result }: Raw<RunResult>): RunSummary {
  const { seed, minutes, counts, violations, examples, lostLeases, deadLetters, recovery, faults } = result;
  const count = (isWanted: (name: string) => boolean) => faults.filter(({ name }) => isWanted(name)).length;
  return {
    ...{ seed, minutes, at, commit, counts, violations, examples, lostLeases, deadLetters },
    faults: { all: faults.length, crashes: count(isCrash), cuts: count(isCut) },
    recovery: {
      toFirstAck: rounded(recovery.toFirstAck),
      toHalfThroughput: rounded(recovery.toHalfThroughput),
      neverRecovered: recovery.neverRecovered,
      drainMs: recovery.drainMs === null ? null : Math.round(recovery.drainMs),
    },
  };
}

function faultRows({ recovery }: RunResult): Record<string, FaultRow> {
  return Object.fromEntries(
    Object.entries(recovery.byFault).map(([name, { count, toFirstAck }]) => [
      name,
      { times: count, p50: Math.round(toFirstAck?.p50 ?? 0), max: Math.round(toFirstAck?.max ?? 0) },
    ]),
  );
}

function joinFaults(
  one: Record<string, FaultRow>,
  other: Record<string, FaultRow>,
): Record<string, FaultRow> {
  const none: FaultRow = { times: 0, p50: 0, max: 0 };
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  return Object.fromEntries(
    names.map((name) => {
      const [a, b] = [one[name] ?? none, other[name] ?? none];
      return [name, { times: a.times + b.times, p50: Math.max(a.p50, b.p50), max: Math.max(a.max, b.max) }];
    }),
  );
}

/** One row of each kind. */
function worstOf<Row>(
  rows: readonly Row[],
  kindOf: (row: Row) => string,
  worse: (one: Row, other: Row) => Row,
): Row[] {
  const byKind = new Map<string, Row>();
  for (const row of rows) {
    const known = byKind.get(kindOf(row));
    byKind.set(kindOf(row), known === undefined ? row : worse(known, row));
  }
  return [...byKind.values()];
}

/** The worst first. */
const VERDICTS: readonly NeighbourRow['verdict'][] = ['broken', 'kept', 'not judged'];

/** Requests and failures of both; times, limit and verdict of the one that did worse. */
function worseNeighbour(one: NeighbourRow, other: NeighbourRow): NeighbourRow {
  const share = ({ p99, limit }: NeighbourRow): number => (p99 === null || !limit ? 0 : p99 / limit);
  const byVerdict = VERDICTS.indexOf(one.verdict) - VERDICTS.indexOf(other.verdict);
  const isOtherWorse = byVerdict === 0 ? share(other) > share(one) : byVerdict > 0;
  return {
    ...(isOtherWorse ? other : one),
    requests: one.requests + other.requests,
    failures: one.failures + other.failures,
    failedWith: one.failedWith ?? other.failedWith,
  };
}

/** Orders of both; of each figure the larger. */
function worseHold(one: HoldRow, other: HoldRow): HoldRow {
  const worseSpread = (a: Spread, b: Spread): Spread =>
    a === null || b === null
      ? (a ?? b)
      : {
          n: a.n + b.n,
          p50: Math.max(a.p50, b.p50),
          p99: Math.max(a.p99, b.p99),
          max: Math.max(a.max, b.max),
        };
  const past = [one.pastMs, other.pastMs].filter((ms) => ms !== null);
  return {
    kind: one.kind,
    count: one.count + other.count,
    late: worseSpread(one.late, other.late),
    lateUnexcused: worseSpread(one.lateUnexcused, other.lateUnexcused),
    boundMs: Math.max(one.boundMs, other.boundMs),
    pastMs: past.length === 0 ? null : Math.max(...past),
    beyond: one.beyond + other.beyond,
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
