// One run of one way: an empty table, warm up, send, count, and check that every answer has its row.

import { fileURLToPath } from 'node:url';
import { cpuUs, endedUs, ownUs, postmasterOf, startMeter } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { type Sample, summarise } from '../stats.ts';
import type { World } from '../world.ts';
import type { Order, Report } from './sender.ts';
import { SECRET, SITE, startCoalesced, startSingle } from './servers.ts';

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
  const sender = new Forked(SENDER);
  const report = await sender.ask<Report>(order);
  await sender.end();
  return report;
}

export async function measure({ db2, db2Url }: World, cell: Cell): Promise<Sample> {
  const server = await (cell.name === 'single'
    ? startSingle(db2Url, cell.db_connections)
    : startCoalesced(db2Url));
  try {
    const order = { port: server.port, connections: cell.clients, site: SITE, secret: SECRET };
    await db2.run('truncate public.calls');
    await send({ ...order, seconds: WARM_UP_SEC });
    await db2.run('truncate public.calls');
    await db2.run('checkpoint');
    const before = await db2.walBytes();
    const postmaster = await postmasterOf(db2);
    // The server runs in this process; the sender has ended when it is counted.
    const spent = startMeter({ system: () => ownUs() + cpuUs(postmaster), load: endedUs });
    const { finished, refused } = await send({ ...order, seconds: cell.seconds });
    const cpu = spent(finished.length);
    const wal = (await db2.walBytes()) - before;
    const stored = await db2.ask<number>('select count(*)::int from public.calls');
    if (stored !== finished.length - refused)
      throw new Error(`${finished.length - refused} answers of 200 and ${stored} rows`);
    return { ...summarise(finished, 1), ...cpu, wal_bytes_per_op: wal / finished.length, refused };
  } finally {
    await server.stop();
  }
}
