// Runs a negative control: short runs with one seed after another, until the judge finds what it must find.

import type { History } from '../history.ts';
import { judge, type PromiseName, type Violation } from '../judge.ts';
import type { RunOptions } from '../options.ts';
import { countViolations } from '../result.ts';

export type Control = {
  name: string;
  /** What is broken, for people. */
  why: string;
  /** Each of these must be violated, all of them in one run. */
  promises: readonly PromiseName[];
  options: Partial<RunOptions>;
};

export type ControlResult = {
  name: string;
  why: string;
  promises: readonly PromiseName[];
  /** Of the first run with every violation that was expected; null: none had them all. */
  seed: number | null;
  /** From the beginning of the first run until the judge had spoken. */
  elapsedMs: number;
  rounds: number;
  violations: Record<string, number>;
  example: Violation | null;
};

/** A control that takes longer than this has found nothing. */
const BUDGET_MS = 180_000;
const FIRST_SEED = 1;

export async function runControl(
  control: Control,
  run: (options: RunOptions) => Promise<History>,
  { seed = FIRST_SEED, budgetMs = BUDGET_MS }: { seed?: number; budgetMs?: number } = {},
): Promise<ControlResult> {
  const { name, why, promises } = control;
  const startedMs = performance.now();
  for (let rounds = 1; ; rounds++) {
    const options = {
      minutes: 0.25,
      faults: [],
      scale: 'small' as const,
      ...control.options,
      seed: seed + rounds - 1,
    };
    const history = await run(options);
    const { violations } = judge(history);
    const examples = promises.map((name) => violations.find(({ promise }) => promise === name));
    const found = examples.includes(undefined) ? undefined : examples[0];
    // Where servers do not even start nothing is broken, and that would look like a judge who sees nothing.
    if (found === undefined && history.surprises?.length)
      throw new Error(`control ${name} could not be tried: ${history.surprises.join('; ')}`);
    const elapsedMs = Math.round(performance.now() - startedMs);
    if (found !== undefined || elapsedMs > budgetMs)
      return {
        ...{ name, why, promises, elapsedMs, rounds },
        seed: found === undefined ? null : options.seed,
        violations: countViolations(violations),
        example: found ?? null,
      };
  }
}
