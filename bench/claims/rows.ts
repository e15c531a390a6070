// The rows of the claims suite and their table.

import {
  column,
  cpuColumns,
  makeTable,
  mediansOf,
  NAME,
  SPEED,
  type Tuned,
  tunedLines,
  whole,
} from '../rows.ts';
import type { Sample } from '../stats.ts';
import type { Row } from '../suite.ts';
import type { Cell } from './plan.ts';

/** Which row each way is compared with in the table. */
const COMPARED_WITH: Record<string, string> = {
  'baseline-indexed': 'baseline',
  single: 'baseline',
  'single-request-id': 'baseline',
  batch: 'baseline',
  'batch-request-id': 'baseline',
  'batch-insert': 'baseline',
  'batch-large-pool': 'batch-small-pool',
  'http-indexed': 'http',
  'http-coalesced': 'http',
  'http-stub': 'http-coalesced',
  floor: 'baseline',
  'sold-out-baseline-indexed': 'sold-out-baseline',
  'sold-out': 'sold-out-baseline',
};

export function makeRow({ name, clients, batch, slots, maxSec }: Cell, samples: readonly Sample[]): Row {
  return { ...mediansOf(samples), name, clients, batch, slots, max_sec: maxSec };
}

const TUNED: Tuned = [
  [
    ['baseline', 'http'],
    'as the requirements write it; prepared statements; vacuumed and analysed before each run',
  ],
  [
    ['baseline-indexed', 'http-indexed'],
    'the same with enable_seqscan off: it keeps the index that it is meant to use, at any size of the pool',
  ],
  [
    ['http', 'http-indexed'],
    'the server of http-coalesced with the same checks; ten connections to the database',
  ],
  [
    ['http-stub'],
    'the server of http-coalesced; it answers its own call of claim_batch in the next turn of its event loop',
  ],
  [
    ['batch-insert'],
    'one statement writes the claim rows and messages of 100 buyers; ids begin with the time, as those of claims',
  ],
];

/** Batches are compared with the baseline on one connection: that is what they replace. */
function otherRow(rows: readonly Row[], row: Row): Row | undefined {
  const name = COMPARED_WITH[row.name];
  const isBatch = ['batch', 'batch-request-id', 'batch-insert'].includes(row.name);
  const batch = row.name === 'batch-large-pool' ? row.batch : 1;
  const clients = isBatch ? 1 : row.clients;
  return rows.find((one) => one.name === name && one.clients === clients && one.batch === batch);
}

export function tableOf(rows: readonly Row[]): string {
  const against = (row: Row, text: (other: Row) => string): string => {
    const other = otherRow(rows, row);
    return other === undefined ? '' : text(other);
  };
  const parts = { heading: 'of which', isText: true, text: ({ parts = '' }: Row) => String(parts) };
  const versions = { heading: 'version', isText: true, text: ({ version = '' }: Row) => String(version) };
  const table = makeTable(
    [
      NAME,
      ...(rows.some(({ version }) => version !== undefined) ? [versions] : []),
      column('clients', 'clients'),
      { heading: 'batch', text: (row) => String(row.batch) },
      { heading: 'slots', text: (row) => (Number(row.slots) === 0 ? '' : whole(row.slots)) },
      ...SPEED,
      ...cpuColumns(rows),
      ...(rows.some((row) => row.parts !== undefined) ? [parts] : []),
      column('WAL bytes', 'wal_bytes_per_op'),
      column('first 1/10', 'first_tenth_rate'),
      column('last 1/10', 'last_tenth_rate'),
      {
        heading: 'sold',
        text: ({ sold_part: part }) => (part === undefined ? '' : `${whole(Number(part) * 100)} %`),
      },
      { heading: 'ratio', text: (row) => against(row, ({ rate }) => (row.rate / rate).toFixed(2)) },
      {
        heading: 'against',
        isText: true,
        text: (row) => against(row, ({ name, clients }) => `${name}, ${clients}`),
      },
    ],
    rows,
  );
  return [table, ...rows.flatMap(warningOf), ...tunedLines(TUNED, rows)].join('\n');
}

/** A door that refused or dropped requests was not measured at what the row says. */
function warningOf({ name, clients, refused = 0, broken = 0 }: Row): string[] {
  if (refused === 0 && broken === 0) return [];
  return [
    `warning: ${name}, ${clients} connections: ${refused} requests refused, ${broken} without an answer`,
  ];
}
