// One run of one way: fill or clear, warm up, run, count, and check that nothing is missing.

import { quantile, type Sample } from '../stats.ts';
import { startCoalesced, startSingle } from './doors.ts';
import { graphileWorker, ours } from './drains.ts';
import { sendSigned } from './load.ts';
import type { Cell, DrainCell, RouteCell } from './plan.ts';
import type { World } from './world.ts';

const AMOUNT = 2_500;
const WARM_UP_SEC = 1;
const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;
/** More than any of the doors can answer; what is left over is not sent. */
const DELIVERIES_PER_SEC = 30_000;

export function measure(world: World, cell: Cell): Promise<Sample> {
  return 'events' in cell ? measureDrain(world, cell) : measureRoute(world, cell);
}

async function walBytes(world: World): Promise<number> {
  return Number(await world.value<string>('bench.wal_bytes'));
}

async function measureRoute(world: World, cell: RouteCell): Promise<Sample> {
  await world.clear();
  const server =
    cell.name === 'single' ? await startSingle(world, cell.db_connections) : await startCoalesced(world);
  try {
    const load = { wrk: world.wrk, url: server.url, connections: cell.clients };
    const deliveriesOf = (seconds: number) => ({ seconds, deliveries: seconds * DELIVERIES_PER_SEC });
    await sendSigned({ ...load, ...deliveriesOf(WARM_UP_SEC) });
    await world.clear();
    const before = await walBytes(world);
    const sent = await sendSigned({ ...load, ...deliveriesOf(cell.seconds) });
    const ops = sent.requests - sent.refused;
    const stored = Number(await world.value('bench.stored'));
    // Requests under way when wrk stopped are stored without being counted; a few at the end are duplicates.
    if (ops <= 0 || Math.abs(stored - ops) > 2 * cell.clients)
      throw new Error(`${cell.name}: ${sent.requests} requests, ${sent.refused} refused, ${stored} stored`);
    return {
      ops,
      seconds: sent.micros / US_PER_SEC,
      rate: (ops * US_PER_SEC) / sent.micros,
      p50_ms: sent.p50_us / US_PER_MS,
      p99_ms: sent.p99_us / US_PER_MS,
      wal_bytes_per_op: ((await walBytes(world)) - before) / stored,
      refused: sent.refused,
      broken: sent.broken,
    };
  } finally {
    await server.stop();
  }
}

async function measureDrain(world: World, cell: DrainCell): Promise<Sample> {
  if (cell.warmUpEvents > 0) await drain(world, { ...cell, events: cell.warmUpEvents });
  return drain(world, cell);
}

async function drain(world: World, cell: DrainCell): Promise<Sample> {
  const way = cell.name === 'process' ? ours : graphileWorker;
  await world.clear(() => way.load(world, cell.events));
  const before = await walBytes(world);
  const { seconds, tookMs } = await way.run(world, cell);
  const wal = (await walBytes(world)) - before;
  await way.check(world);
  const [effects] = await world.rows<Record<'payments' | 'credits' | 'amount', string>>('bench.effects');
  const wanted = [cell.events, cell.events, cell.events * AMOUNT].map(String);
  const seen = [effects?.payments, effects?.credits, effects?.amount];
  if (seen.join() !== wanted.join()) throw new Error(`${cell.name}: effects ${seen}, not ${wanted}`);
  const sorted = tookMs.sort((a, b) => a - b);
  return {
    ops: cell.events,
    seconds,
    rate: cell.events / seconds,
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    wal_bytes_per_op: wal / cell.events,
  };
}
