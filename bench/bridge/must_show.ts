// The ratios the bridge has to reach, each from rows of the same run, everybody at their best.

import type { Demand, Row } from '../suite.ts';
import { bestRate } from './rows.ts';

const AGAINST_BASELINE_AT_LEAST = 25;

export function demands(rows: readonly Row[]): Demand[] {
  const against = (name: string, atLeast: number): Demand => ({
    what: `bridge / ${name}, both at their best`,
    atLeast,
    value: bestRate(rows, 'bridge') / bestRate(rows, name),
  });
  return [
    against('baseline', AGAINST_BASELINE_AT_LEAST),
    against('graphile-worker', 1),
    against('pg-boss', 1),
  ];
}
