// One run of one way: fill or clear, warm up, run, count, and check that nothing is missing.

import { startOurs } from '../servers.ts';
import type { Sample } from '../stats.ts';
import { timingOf } from '../stopwatch.ts';
import { sampleOfWrk } from '../wrk/wrk.ts';
import { graphileWorker, ours } from './drains.ts';
import { sendSigned } from './load.ts';
import { startPlainServer } from './plain_server.ts';
import type { Cell, DrainCell, RouteCell } from './plan.ts';
import { SECRET, type WebhooksWorld } from './world.ts';

const AMOUNT = 2_500;
const WARM_UP_SEC = 1;
/** How many effects were taken, and their sum. */
const EFFECTS = `
  select array[
    (select count(*) from public.payments p where p.state = 'succeeded'), count(*), coalesce(sum(c.amount), 0)::bigint
  ]::float8[]
  from public.credit_ledger c`;

export function measure(world: WebhooksWorld, cell: Cell): Promise<Sample> {
  return 'events' in cell ? measureDrain(world, cell) : measureRoute(world, cell);
}

async function measureRoute(world: WebhooksWorld, cell: RouteCell): Promise<Sample> {
  await world.clear();
  const server = await (cell.name === 'single'
    ? startPlainServer(world, cell.db_connections)
    : startOurs(world, SECRET));
  try {
    const load = { wrk: world.wrk, url: server.url, connections: cell.clients };
    await sendSigned({ ...load, seconds: WARM_UP_SEC });
    await world.clear();
    const before = await world.db2.walBytes();
    const sample = sampleOfWrk(await sendSigned({ ...load, seconds: cell.seconds }));
    const stored = await world.db2.ask<number>('select count(*)::int from public.webhook_events');
    // Requests under way when wrk stopped are stored without being counted; a few at the end are duplicates.
    if (Math.abs(stored - sample.ops) > 2 * cell.clients)
      throw new Error(`${cell.name}: ${sample.ops} successes, ${sample.refused} refused, ${stored} stored`);
    return { ...sample, wal_bytes_per_op: ((await world.db2.walBytes()) - before) / stored };
  } finally {
    await server.stop();
  }
}

async function measureDrain(world: WebhooksWorld, cell: DrainCell): Promise<Sample> {
  if (cell.warmUpEvents > 0) await drain(world, { ...cell, events: cell.warmUpEvents });
  return drain(world, cell);
}

async function drain(world: WebhooksWorld, cell: DrainCell): Promise<Sample> {
  const way = cell.name === 'process' ? ours : graphileWorker;
  await world.clear(() => way.load(world, cell.events));
  const before = await world.db2.walBytes();
  const drained = await way.run(world, cell);
  const wal = (await world.db2.walBytes()) - before;
  await way.check(world);
  const seen = await world.db2.ask<number[]>(EFFECTS);
  const wanted = [cell.events, cell.events, cell.events * AMOUNT];
  if (seen.join() !== wanted.join()) throw new Error(`${cell.name}: effects ${seen}, not ${wanted}`);
  return { ...timingOf(drained, cell.events), wal_bytes_per_op: wal / cell.events };
}
