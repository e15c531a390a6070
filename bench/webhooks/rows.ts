// Repetitions become rows, rows become a table and the ratios that the run has to show.

import { formatTable } from '../../src/commands/table.ts';
import { median, type Sample } from '../stats.ts';
import type { Demand, Row } from '../suite.ts';
import { type Cell, POOL } from './plan.ts';

const AGAINST_ONE_AT_LEAST = 4;
const AGAINST_POOL_AT_LEAST = 2;
const HEADINGS = [
  ...['row', 'clients', 'batch', 'connections', 'events', 'per second', 'spread'],
  ...['p50 ms', 'p99 ms', 'WAL bytes', 'refused'],
];

export function makeRow(cell: Cell, samples: readonly Sample[]): Row {
  const medianOf = (name: 'ops' | 'seconds' | 'rate' | 'p50_ms' | 'p99_ms' | 'wal_bytes_per_op') =>
    median(samples.map((sample) => sample[name]));
  const rates = samples.map(({ rate }) => rate);
  const { name, clients, batch } = cell;
  return {
    name,
    clients,
    batch,
    ...('db_connections' in cell && { db_connections: cell.db_connections }),
    ops: medianOf('ops'),
    seconds: medianOf('seconds'),
    repetitions: samples.length,
    rate: medianOf('rate'),
    rate_min: Math.min(...rates),
    rate_max: Math.max(...rates),
    p50_ms: medianOf('p50_ms'),
    p99_ms: medianOf('p99_ms'),
    wal_bytes_per_op: medianOf('wal_bytes_per_op'),
    refused: samples.reduce((sum, { refused = 0, broken = 0 }) => sum + refused + broken, 0),
  };
}

export function demands(rows: readonly Row[]): Demand[] {
  const doors = [...new Set(rows.filter(({ name }) => name === 'coalesced').map(({ clients }) => clients))];
  const rate = (name: string, clients: number, connections: number) =>
    rows.find((row) => row.name === name && row.clients === clients && row.db_connections === connections)
      ?.rate;
  const best = (name: string) => Math.max(...rows.filter((row) => row.name === name).map((row) => row.rate));
  const against = (clients: number, connections: number, atLeast: number): Demand => {
    const [ours, other] = [rate('coalesced', clients, 1), rate('single', clients, connections)];
    const on = connections === 1 ? 'one connection' : `a pool of ${connections}`;
    return {
      what: `coalesced / one insert each on ${on}, ${clients} HTTP connections`,
      atLeast,
      ...(ours !== undefined && other !== undefined && { value: ours / other }),
    };
  };
  return [
    ...doors.flatMap((clients) => [
      against(clients, 1, AGAINST_ONE_AT_LEAST),
      against(clients, POOL, AGAINST_POOL_AT_LEAST),
    ]),
    {
      what: 'process / graphile-worker with the same effect, both at their best',
      atLeast: 1,
      value: best('process') / best('graphile-worker'),
    },
  ];
}

export function makeTable(rows: readonly Row[]): string {
  const whole = (value: number | string | undefined) =>
    value === undefined ? '' : Math.round(Number(value)).toLocaleString('en-US');
  const spread = (row: Row) =>
    row.repetitions === 1
      ? ''
      : `±${Math.round(((Number(row.rate_max) - Number(row.rate_min)) / 2 / row.rate) * 100)} %`;
  const cells = rows.map((row) => [
    ...[row.name, whole(row.clients), whole(row.batch), whole(row.db_connections), whole(row.ops)],
    ...[whole(row.rate), spread(row), row.p50_ms.toFixed(2), row.p99_ms.toFixed(2)],
    ...[whole(row.wal_bytes_per_op), whole(row.refused)],
  ]);
  return formatTable(HEADINGS, cells, Number.POSITIVE_INFINITY);
}
