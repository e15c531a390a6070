// The rows of the webhooks suite, their table, and the ratios it has to show.

import { bestRate, type Column, column, makeTable, mediansOf, NAME, SPEED, sumOf } from '../rows.ts';
import type { Sample } from '../stats.ts';
import type { Demand, Row } from '../suite.ts';
import { type Cell, POOL } from './plan.ts';

const AGAINST_ONE_AT_LEAST = 4;
const AGAINST_POOL_AT_LEAST = 2;
const COLUMNS: Column[] = [
  NAME,
  ...[column('clients', 'clients'), column('batch', 'batch'), column('connections', 'db_connections')],
  ...[
    column('events', 'ops'),
    ...SPEED,
    column('WAL bytes', 'wal_bytes_per_op'),
    column('refused', 'refused'),
  ],
];

export function makeRow(cell: Cell, samples: readonly Sample[]): Row {
  const { name, clients, batch } = cell;
  return {
    ...mediansOf(samples),
    ...{ name, clients, batch },
    ...('db_connections' in cell && { db_connections: cell.db_connections }),
    refused: sumOf(samples, ({ refused = 0, broken = 0 }) => refused + broken),
  };
}

export function demands(rows: readonly Row[]): Demand[] {
  const doors = [...new Set(rows.filter(({ name }) => name === 'coalesced').map(({ clients }) => clients))];
  const rate = (name: string, clients: number, connections: number) =>
    rows.find((row) => row.name === name && row.clients === clients && row.db_connections === connections)
      ?.rate;
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
      value: bestRate(rows, 'process') / bestRate(rows, 'graphile-worker'),
    },
  ];
}

export const tableOf = (rows: readonly Row[]): string => makeTable(COLUMNS, rows);
