// The rows of the bridge suite, their table, and the ratios it has to show.

import { bestRate, type Column, column, cpuColumns, makeTable, mediansOf, NAME, SPEED } from '../rows.ts';
import { type Demand, demandOf, quotient, type Row } from '../suite.ts';
import type { DrainSample } from './measure.ts';
import type { Cell } from './plan.ts';

const AGAINST_BASELINE_AT_LEAST = 25;
const AT_EQUAL_WORK_AT_LEAST = 1.5;

export function makeRow(cell: Cell, samples: readonly DrainSample[]): Row {
  const { name, clients, batch, messages, way } = cell;
  return {
    ...mediansOf(samples),
    ...{ name, clients, batch, messages, settings: way.settings(cell) },
    // 1 where it ends claims and slots too, as the bridge does.
    ends_claims: Number(way.endsClaims),
  };
}

/** Each from rows of the same run, and each way at its best. */
export function demands(rows: readonly Row[]): Demand[] {
  const bridge = bestRate(rows, 'bridge');
  const against = (name: string, atLeast: number): Demand =>
    demandOf(`bridge / ${name}, both at their best`, atLeast, quotient(bridge, bestRate(rows, name)));
  return [
    against('baseline', AGAINST_BASELINE_AT_LEAST),
    against('graphile-worker', 1),
    against('pg-boss', 1),
    demandOf(
      'bridge / the best other row that ends claims and slots too, all at their best',
      AT_EQUAL_WORK_AT_LEAST,
      quotient(bridge, bestAtEqualWork(rows)),
    ),
  ];
}

function bestAtEqualWork(rows: readonly Row[]): number | undefined {
  const rates = rows.filter(({ name, ends_claims }) => name !== 'bridge' && ends_claims === 1);
  return rates.length === 0 ? undefined : Math.max(...rates.map(({ rate }) => rate));
}

export function tableOf(rows: readonly Row[]): string {
  const [baseline, bridge] = [bestRate(rows, 'baseline'), bestRate(rows, 'bridge')];
  const columns: Column[] = [
    NAME,
    column('at once', 'clients'),
    column('batch', 'batch'),
    column('messages', 'messages'),
    ...SPEED,
    ...cpuColumns(rows),
    column('WAL DB1', 'db1_wal_bytes_per_op'),
    column('WAL DB2', 'db2_wal_bytes_per_op'),
    { heading: 'dead rows', text: (row) => Number(row.dead_tuples_per_op).toFixed(2) },
    { heading: '/ baseline', text: (row) => quotient(row.rate, baseline)?.toFixed(1) ?? '' },
    { heading: 'bridge / it', text: (row) => quotient(bridge, row.rate)?.toFixed(1) ?? '' },
  ];
  const settings = rows.map((row) => `  ${row.name}, ${row.clients}: ${row.settings}`);
  return [makeTable(columns, rows), '', 'settings', ...new Set(settings)].join('\n');
}
