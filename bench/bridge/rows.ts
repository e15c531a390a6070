// The rows of the bridge suite, their table, and the ratios it has to show.

import { bestRate, type Column, column, makeTable, mediansOf, NAME, SPEED } from '../rows.ts';
import type { Demand, Row } from '../suite.ts';
import type { DrainSample } from './measure.ts';
import type { Cell } from './plan.ts';

const AGAINST_BASELINE_AT_LEAST = 25;

export function makeRow(cell: Cell, samples: readonly DrainSample[]): Row {
  const { name, clients, batch, messages } = cell;
  return { ...mediansOf(samples), name, clients, batch, messages, settings: cell.way.settings(cell) };
}

/** Each from rows of the same run, and each way at its best. */
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

export function tableOf(rows: readonly Row[]): string {
  const [baseline, bridge] = [bestRate(rows, 'baseline'), bestRate(rows, 'bridge')];
  const columns: Column[] = [
    NAME,
    column('at once', 'clients'),
    column('batch', 'batch'),
    column('messages', 'messages'),
    ...SPEED,
    column('WAL DB1', 'db1_wal_bytes_per_op'),
    column('WAL DB2', 'db2_wal_bytes_per_op'),
    { heading: 'dead rows', text: (row) => Number(row.dead_tuples_per_op).toFixed(2) },
    { heading: '/ baseline', text: (row) => (row.rate / baseline).toFixed(1) },
    { heading: 'bridge / it', text: (row) => (bridge / row.rate).toFixed(1) },
  ];
  const settings = rows.map((row) => `  ${row.name}, ${row.clients}: ${row.settings}`);
  return [makeTable(columns, rows), '', 'settings', ...new Set(settings)].join('\n');
}
