// One run of one way: fill or clear, warm up, run, count, and check that nothing is missing.

import { randomUUID } from 'node:crypto';
import type { Recorded } from '#core/webhook/ports.ts';
import { cpuUs, endedUs, ownUs, postmasterOf, startMeter } from '../cpu.ts';
import { startOurs } from '../servers.ts';
import type { Sample } from '../stats.ts';
import { timingOf } from '../stopwatch.ts';
import { membersOf, stubCall } from '../stub.ts';
import { sampleOfWrk } from '../wrk/wrk.ts';
import { graphileWorker, ours } from './drains.ts';
import { withSigned } from './load.ts';
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
  const isStub = cell.name === 'coalesced-stub';
  const goOn = isStub ? stubCall('webhook.record_events', recordedAll) : undefined;
  const server = await (cell.name === 'single'
    ? startPlainServer(world, cell.db_connections)
    : startOurs(world, SECRET));
  try {
    const load = { wrk: world.wrk, url: server.url, connections: cell.clients };
    await withSigned(WARM_UP_SEC, (send) => send(load));
    return await withSigned(cell.seconds, async (send) => {
      await world.clear();
      const before = await world.db2.walBytes();
      const spent = startMeter(await accountsOf(world));
      const sample = sampleOfWrk(await send(load));
      const cpu = spent(sample.ops);
      const stored = await world.db2.ask<number>('select count(*)::int from public.webhook_events');
      // Requests under way when wrk stopped are stored without being counted; a few at the end are duplicates.
      if (Math.abs(stored - (isStub ? 0 : sample.ops)) > 2 * cell.clients)
        throw new Error(`${cell.name}: ${sample.ops} successes, ${sample.refused} refused, ${stored} stored`);
      const wal = (await world.db2.walBytes()) - before;
      return { ...sample, ...cpu, wal_bytes_per_op: wal / sample.ops };
    });
  } finally {
    await server.stop();
    goOn?.();
  }
}

/** The server, or worker, is this process; wrk has ended when it is counted. */
async function accountsOf({ db2 }: WebhooksWorld) {
  const postmaster = await postmasterOf(db2);
  return { system: () => ownUs() + cpuUs(postmaster), load: endedUs };
}

/** What webhook.record_events answers when all are new; its first argument are the endpoints of the events. */
function recordedAll([webhookIds]: readonly unknown[]): Recorded[] {
  return membersOf(webhookIds).map((_, at) => ({
    ordinal: at + 1,
    id: randomUUID(),
    outcome: 'recorded',
    status: 'pending',
    lane: 0,
  }));
}

async function measureDrain(world: WebhooksWorld, cell: DrainCell): Promise<Sample> {
  if (cell.warmUpEvents > 0) await drain(world, { ...cell, events: cell.warmUpEvents });
  return drain(world, cell);
}

async function drain(world: WebhooksWorld, cell: DrainCell): Promise<Sample> {
  const way = cell.name === 'process' ? ours : graphileWorker;
  await world.clear(() => way.load(world, cell.events));
  const before = await world.db2.walBytes();
  const spent = startMeter(await accountsOf(world));
  const drained = await way.run(world, cell);
  const cpu = spent(cell.events);
  const wal = (await world.db2.walBytes()) - before;
  await way.check(world);
  const seen = await world.db2.ask<number[]>(EFFECTS);
  const wanted = [cell.events, cell.events, cell.events * AMOUNT];
  if (seen.join() !== wanted.join()) throw new Error(`${cell.name}: effects ${seen}, not ${wanted}`);
  return { ...timingOf(drained, cell.events), ...cpu, wal_bytes_per_op: wal / cell.events };
}
