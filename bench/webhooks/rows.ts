// The rows of the webhooks suite, their table, and the ratios it has to show.

import {
  bestRate,
  type Column,
  column,
  cpuColumns,
  makeTable,
  mediansOf,
  NAME,
  SPEED,
  sumOf,
  type Tuned,
  tunedLines,
} from '../rows.ts';
import type { Sample } from '../stats.ts';
import { type Demand, demandOf, quotient, type Row } from '../suite.ts';
import { type Cell, POOL } from './plan.ts';

const AGAINST_ONE_AT_LEAST = 4;
const AGAINST_POOL_AT_LEAST = 2;
const STUB_AT_LEAST = 0.6;
const TUNED: Tuned = [
  [
    ['single'],
    'the server of coalesced with the same checks; a prepared insert for each delivery, the shortest durable record there is',
  ],
  [
    ['coalesced-stub'],
    'the server of coalesced; it answers its own call of record_events in the next turn of its event loop',
  ],
  [
    ['graphile-worker'],
    'a local queue and batched completion, as its performance page advises; the same SQL effect',
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
    const on = connections === 1 ? 'one connection' : `a pool of ${connections}`;
    return demandOf(
      `coalesced / one insert each on ${on}, ${clients} HTTP connections`,
      atLeast,
      quotient(rate('coalesced', clients, 1), rate('single', clients, connections)),
    );
  };
  return [
    ...doors.flatMap((clients) => [
      against(clients, 1, AGAINST_ONE_AT_LEAST),
      against(clients, POOL, AGAINST_POOL_AT_LEAST),
      demandOf(
        `coalesced / the same server with its database call stubbed, ${clients} HTTP connections`,
        STUB_AT_LEAST,
        quotient(rate('coalesced', clients, 1), rate('coalesced-stub', clients, 1)),
      ),
    ]),
    demandOf(
      'process / graphile-worker with the same effect, both at their best',
      1,
      quotient(bestRate(rows, 'process'), bestRate(rows, 'graphile-worker')),
    ),
  ];
}

export function tableOf(rows: readonly Row[]): string {
  const columns: Column[] = [
    NAME,
    ...[column('clients', 'clients'), column('batch', 'batch'), column('connections', 'db_connections')],
    ...[column('events', 'ops'), ...SPEED, ...cpuColumns(rows)],
    ...[column('WAL bytes', 'wal_bytes_per_op'), column('refused', 'refused')],
  ];
  return [makeTable(columns, rows), ...tunedLines(TUNED, rows)].join('\n');
}
