// What a run of cells writes down, line by line, and what is kept of it.

import { StackError } from '../../src/failure.ts';
import type { CellControlResult } from './controls.ts';
import { FAULTS } from './faults.ts';

/** What became of one fault; a line of results/chaos/cells-<seed>.jsonl. */
export interface Outcome {
  readonly product_hash: string;
  readonly number: number;
  readonly side: 'db1' | 'db2';
  readonly fault: string;
  readonly isFailover: boolean;
  readonly gapMs: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
}

/** What was left of one pair of cells when all was carried; the line after its outcomes. */
export interface End {
  readonly product_hash: string;
  readonly commit: string;
  readonly acknowledged: number;
  readonly drainMs: number;
  readonly findings: readonly string[];
}

export type CellsSummary = {
  failovers: number;
  pairs_of_cells: number;
  acknowledged: number;
  slowest_drain_ms: number;
  findings: string[];
  faults: CellsRow[];
  controls: CellControlResult[];
};

export type CellsRow = {
  fault: string;
  times: number;
  failovers: number;
  gap_p50_ms: number | null;
  gap_p99_ms: number | null;
  lost: number;
  doubled: number;
};

/** A run that is resumed has to go on with the product that it began with. */
export function assertOneVersion(
  lines: readonly { product_hash?: string }[],
  hash: string,
  file: string,
): void {
  if (lines.every((line) => line.product_hash === hash)) return;
  throw new StackError(
    `${file} has results of other product files than these`,
    'go on with the checkout that they are of, or begin anew without --resume',
  );
}

export function cellsSummaryOf(
  outcomes: readonly Outcome[],
  ends: readonly End[],
  controls: readonly CellControlResult[],
): CellsSummary {
  return {
    failovers: outcomes.filter(({ isFailover }) => isFailover).length,
    pairs_of_cells: ends.length,
    acknowledged: sum(ends, ({ acknowledged }) => acknowledged),
    slowest_drain_ms: Math.max(0, ...ends.map(({ drainMs }) => drainMs)),
    findings: ends.flatMap(({ findings }) => findings),
    faults: [
      ...FAULTS.map(({ name }) =>
        rowOf(
          name,
          outcomes.filter(({ fault }) => fault === name),
        ),
      ),
      rowOf('all', outcomes),
    ],
    controls: [...controls],
  };
}

function rowOf(fault: string, own: readonly Outcome[]): CellsRow {
  const gaps = own.map(({ gapMs }) => gapMs).sort((one, other) => one - other);
  const at = (share: number): number | null => gaps[Math.ceil(share * gaps.length) - 1] ?? null;
  return {
    ...{ fault, times: own.length, failovers: own.filter(({ isFailover }) => isFailover).length },
    ...{ gap_p50_ms: at(0.5), gap_p99_ms: at(0.99) },
    ...{ lost: sum(own, ({ lost }) => lost), doubled: sum(own, ({ doubled }) => doubled) },
  };
}

const sum = <Item>(items: readonly Item[], amountOf: (item: Item) => number): number =>
  items.reduce((total, item) => total + amountOf(item), 0);
