// The calls suite: call events a second through HTTP, verified and durable: one insert each against the coalesced door.

import pg from 'pg';
import { formatTable } from '../src/commands/table.ts';
import { startDatabases } from '../test/support/databases.ts';
import { type Cell, measure } from './calls/measure.ts';
import { SITE } from './calls/servers.ts';
import { DURABLE, readSettings } from './durability.ts';
import { median, type Sample } from './stats.ts';
import type { Demand, Row, Suite } from './suite.ts';

const POOL_CONNECTIONS = 10;
const REPETITIONS = 3;
const RUN_SEC = 10;
const QUICK_SEC = 1;
const HEADINGS = ['row', 'clients', 'connections', 'per second', 'p50 ms', 'p99 ms', 'WAL bytes'];

export const calls: Suite = {
  summary: 'call events a second through HTTP: one insert each, coalesced',
  async run({ quick, progress }) {
    progress('starting a database');
    const databases = await startDatabases({ db1: false, settings: DURABLE });
    const client = new pg.Client({ connectionString: databases.db2.url });
    try {
      await client.connect();
      await client.query(
        `insert into public.call_sites (site_id, secret_names) values ($1, '{BENCH_SECRET}')`,
        [SITE],
      );
      const cells = makeCells(quick);
      const samples = cells.map((): Sample[] => []);
      for (let round = 1; round <= (quick ? 1 : REPETITIONS); round++) {
        for (const [at, cell] of cells.entries()) {
          progress(
            `round ${round}: ${cell.name}, ${cell.clients} clients, ${cell.db_connections} connections`,
          );
          samples[at]?.push(await measure(client, databases.db2.url, cell));
        }
      }
      const rows = cells.map((cell, at) => makeRow(cell, samples[at] ?? []));
      return { settings: await readSettings(client), rows, demands: demands(rows), table: makeTable(rows) };
    } finally {
      await client.end();
      await databases.stop();
    }
  },
};

function makeCells(quick: boolean): Cell[] {
  const seconds = quick ? QUICK_SEC : RUN_SEC;
  return (quick ? [64] : [64, 256]).flatMap((clients): Cell[] => [
    { name: 'single', clients, db_connections: 1, seconds },
    { name: 'single', clients, db_connections: POOL_CONNECTIONS, seconds },
    { name: 'coalesced', clients, db_connections: 1, seconds },
  ]);
}

function makeRow(cell: Cell, samples: readonly Sample[]): Row {
  const of = (name: 'rate' | 'p50_ms' | 'p99_ms' | 'wal_bytes_per_op') =>
    median(samples.map((sample) => sample[name]));
  return {
    ...cell,
    batch: 1,
    repetitions: samples.length,
    rate: of('rate'),
    rate_min: Math.min(...samples.map(({ rate }) => rate)),
    rate_max: Math.max(...samples.map(({ rate }) => rate)),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    wal_bytes_per_op: of('wal_bytes_per_op'),
    refused: samples.reduce((sum, { refused = 0 }) => sum + refused, 0),
  };
}

function demands(rows: readonly Row[]): Demand[] {
  return [...new Set(rows.map(({ clients }) => clients))].flatMap((clients) => {
    const rate = (name: string, connections: number) =>
      rows.find((row) => row.name === name && row.clients === clients && row.db_connections === connections)
        ?.rate ?? 0;
    return [1, POOL_CONNECTIONS].map((connections) => ({
      what: `coalesced / single on ${connections} connections, at ${clients} clients`,
      atLeast: 1,
      value: rate('coalesced', 1) / rate('single', connections),
    }));
  });
}

function makeTable(rows: readonly Row[]): string {
  const whole = (value: number) => Math.round(value).toLocaleString('en-US');
  const cells = rows.map((row) => [
    row.name,
    String(row.clients),
    String(row.db_connections),
    whole(row.rate),
    row.p50_ms.toFixed(2),
    row.p99_ms.toFixed(2),
    whole(row.wal_bytes_per_op),
  ]);
  return formatTable(HEADINGS, cells, Number.POSITIVE_INFINITY);
}
