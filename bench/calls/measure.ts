// One run of one way: an empty table, warm up, send, count, and check that every answer has its row.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { type Sample, summarise } from '../stats.ts';
import type { Order, Report } from './sender.ts';
import { type BenchServer, SECRET, SITE, startCoalesced, startSingle } from './servers.ts';

export type Cell = {
  name: 'single' | 'coalesced';
  clients: number;
  /** Of the server to the database, for recording. */
  db_connections: number;
  seconds: number;
};

const SENDER = fileURLToPath(new URL('./sender.ts', import.meta.url));
const WARM_UP_SEC = 1;

async function send(order: Order): Promise<Report> {
  const child = fork(SENDER, { execArgv: ['--import', 'tsx'] });
  const reported = once(child, 'message') as Promise<[Report]>;
  const ended = once(child, 'exit');
  child.send(order);
  const first = await Promise.race([reported, ended]);
  if (typeof first[0] !== 'object') throw new Error(`the sender ended with ${first[0]}`);
  await ended;
  return first[0] as Report;
}

async function walBytes(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
  );
  return rows[0].bytes;
}

export async function measure(client: pg.Client, db2Url: string, cell: Cell): Promise<Sample> {
  const server: BenchServer =
    cell.name === 'single' ? await startSingle(db2Url, cell.db_connections) : await startCoalesced(db2Url);
  try {
    const order = { port: server.port, connections: cell.clients, site: SITE, secret: SECRET };
    await client.query('truncate public.calls');
    await send({ ...order, seconds: WARM_UP_SEC });
    await client.query('truncate public.calls');
    await client.query('checkpoint');
    const before = await walBytes(client);
    const { finished, refused } = await send({ ...order, seconds: cell.seconds });
    const wal = (await walBytes(client)) - before;
    const { rows } = await client.query('select count(*)::int as stored from public.calls');
    if (rows[0].stored !== finished.length - refused)
      throw new Error(`${finished.length - refused} answers of 200 and ${rows[0].stored} rows`);
    return { ...summarise(finished, 1), wal_bytes_per_op: wal / finished.length, refused };
  } finally {
    await server.stop();
  }
}
