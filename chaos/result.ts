// What is kept of a run: small enough to commit, enough to write the report from. The history itself is too large.

import { commit, machine } from '../bench/machine.ts';
import { type Counts, type Recovery, throughput } from './counts.ts';
import type { Fault, History } from './history.ts';
import type { PromiseName, Verdict, Violation } from './judge.ts';

export type RunResult = {
  kind: 'chaos';
  at: string;
  commit: string;
  command: string;
  machine: Record<string, string | number>;
  durability: Record<string, string>;
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
};

/** Fine enough to see a fault of a second, coarse enough to be no noise. */
const BIN_MS = 500;
/** Of each promise: the rest says the same again. */
const EXAMPLES_PER_PROMISE = 3;

export function resultOf(history: History, verdict: Verdict, command: string, at: Date): RunResult {
  const { seed, minutes, stormAt, calmAt, faults, lostLeases, final } = history;
  return {
    kind: 'chaos',
    at: at.toISOString(),
    commit: commit(),
    command,
    machine: machine(),
    durability: final.durability?.db1 ?? {},
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
  };
}

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
export const acknowledgedIn = ({ counts }: Pick<RunResult, 'counts'>): number =>
  counts.claims.acknowledged +
  counts.events.acknowledged +
  counts.calls.acknowledged +
  counts.operatorActions;
