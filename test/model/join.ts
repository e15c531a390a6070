// Runs of several seeds as one: 60,000 histories do not fit one evening.

import { refuseKept } from '../../bench/summaries.ts';
import type { ControlResult } from './controls.ts';
import { added, type Tally } from './engine.ts';

export type ModelResult = Tally & { seeds: number[]; seconds: number; controls: ControlResult[] };

/** Of a shortest history that is long, git keeps how it begins: what reads as a row of a table. */
const STEPS_KEPT = 10;

/** What git keeps of a run. */
export function summaryOf(result: ModelResult): ModelResult {
  return {
    ...result,
    controls: result.controls.map((control) => ({ ...control, history: begun(control.history) })),
  };
}

function begun(history: readonly string[]): string[] {
  const more = history.length - STEPS_KEPT;
  return more > 0 ? [...history.slice(0, STEPS_KEPT), `and ${more} steps more`] : [...history];
}

/** The sum. A control that both tried is told as it was tried last. */
export function joinRuns(kept: ModelResult, other: ModelResult): ModelResult {
  refuseKept(kept.seeds, ...other.seeds);
  const tried = new Set(other.controls.map(({ name }) => name));
  return {
    seeds: [...kept.seeds, ...other.seeds],
    ...added(kept, other),
    seconds: kept.seconds + other.seconds,
    controls: [...kept.controls.filter(({ name }) => !tried.has(name)), ...other.controls],
  };
}
