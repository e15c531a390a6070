// One run of one way: fill, run, count.

import { startServer } from '../../src/server/server.ts';
import { runPgbench } from '../pgbench.ts';
import { type Finished, type Sample, summarise } from '../stats.ts';
import { runWrk } from '../wrk.ts';
import { startPlainServer } from './plain_server.ts';
import type { Cell, Way } from './plan.ts';
import type { Design, World } from './world.ts';

type PgbenchWay = { script: string; design: Design; indexed?: boolean };

const PGBENCH_WAYS: Partial<Record<Way, PgbenchWay>> = {
  baseline: { script: 'claim_plain.sql', design: 'plain' },
  'baseline-indexed': { script: 'claim_plain.sql', design: 'plain', indexed: true },
  single: { script: 'claim_single.sql', design: 'ours' },
  'single-request-id': { script: 'claim_single_request_id.sql', design: 'ours' },
  batch: { script: 'claim_batch.sql', design: 'ours' },
  'batch-request-id': { script: 'claim_batch_request_id.sql', design: 'ours' },
  floor: { script: 'floor.sql', design: 'plain' },
  'sold-out-baseline': { script: 'ask_plain.sql', design: 'plain' },
  'sold-out-baseline-indexed': { script: 'ask_plain.sql', design: 'plain', indexed: true },
  'sold-out': { script: 'ask_ours.sql', design: 'ours' },
};

const KEYS = { adminKey: 'bench-admin-key', jwtSecret: 'bench-secret-of-at-least-thirty-two-bytes' };
const CLAIM_PATH = '/v1/pools/bench/claims';
/** Node compiles what is hot, connections fill their caches. */
const HTTP_WARM_UP_SEC = 1;
/** A small pool is gone in a moment: many of them, on one connection, make a rate. */
const SMALL_POOLS = 10;
const SELL_OUT_BATCH = 1_000;
const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;

export async function measure(world: World, cell: Cell): Promise<Sample> {
  const way = PGBENCH_WAYS[cell.name];
  if (way !== undefined) return measurePgbench(world, cell, way);
  if (cell.name === 'batch-small-pool' || cell.name === 'batch-large-pool') return measurePool(world, cell);
  return measureHttp(world, cell);
}

/** Both pools sold to the last slot, and nobody has looked at the tables since they were full. */
export async function sellOut(world: World, slots: number): Promise<void> {
  await world.call('bench.set_autovacuum', { p_on: false });
  await world.fill('plain', slots);
  await world.call('bench.sell_plain');
  await world.fill('ours', slots);
  while ((await claimMany(world, SELL_OUT_BATCH)) > 0);
}

function claimMany(world: World, size: number): Promise<number> {
  return world.call<number>('bench.claim_many', { p_size: size, p_with_request_ids: false });
}

async function walBytes(world: World): Promise<number> {
  return Number(await world.call<string>('bench.wal_bytes'));
}

async function measurePgbench(world: World, cell: Cell, way: PgbenchWay): Promise<Sample> {
  if (!cell.keep) await world.fill(way.design, cell.slots);
  const before = await walBytes(world);
  const finished = await runPgbench({
    pgbench: world.tools.pgbench,
    url: way.indexed ? world.indexedUrl : world.databases.db1.url,
    script: way.script,
    clients: cell.clients,
    maxSec: cell.maxSec,
    size: cell.batch,
  });
  const ops = finished.length * cell.batch;
  const sample: Sample = {
    ...summarise(finished, cell.batch),
    wal_bytes_per_op: ((await walBytes(world)) - before) / ops,
  };
  return cell.slots > 0 && !cell.keep ? { ...sample, sold_part: ops / cell.slots } : sample;
}

/** On one connection that stays: only the claims are timed, not the filling between two small pools. */
async function measurePool(world: World, cell: Cell): Promise<Sample> {
  const pools = cell.name === 'batch-small-pool' ? SMALL_POOLS : 1;
  const finished: Finished[] = [];
  let wal = 0;
  let clockUs = 0;
  for (let pool = 0; pool < pools; pool++) {
    if (!cell.keep) await world.fill('ours', cell.slots);
    const before = await walBytes(world);
    const untilUs = clockUs + (cell.maxSec * US_PER_SEC) / pools;
    let sold = 0;
    while (clockUs < untilUs && sold + cell.batch <= (cell.sell ?? cell.slots)) {
      const startedMs = performance.now();
      sold += await claimMany(world, cell.batch);
      const tookUs = (performance.now() - startedMs) * US_PER_MS;
      // The filling in between does not count: the clock stands still.
      clockUs += tookUs;
      finished.push({ client: 0, endUs: clockUs, tookUs });
    }
    wal += (await walBytes(world)) - before;
  }
  return { ...summarise(finished, cell.batch), wal_bytes_per_op: wal / (finished.length * cell.batch) };
}

async function measureHttp(world: World, cell: Cell): Promise<Sample> {
  const isOurs = cell.name === 'http-coalesced';
  await world.fill(isOurs ? 'ours' : 'plain', cell.slots);
  const { db1, db2 } = world.databases;
  const server = isOurs
    ? await startServer({ port: 0, db1Url: db1.url, db2Url: db2.url, ...KEYS })
    : await startPlainServer(cell.name === 'http-indexed' ? world.indexedUrl : db1.url, KEYS);
  try {
    const load = { wrk: world.tools.wrk, url: server.url, path: CLAIM_PATH, connections: cell.clients };
    await runWrk({ ...load, seconds: HTTP_WARM_UP_SEC });
    const before = await walBytes(world);
    const { requests, micros, p50_us, p99_us, refused, broken } = await runWrk({
      ...load,
      seconds: cell.maxSec,
    });
    const ops = requests - refused;
    if (ops <= 0) throw new Error(`${cell.name}: none of ${requests} requests was answered with a claim`);
    return {
      ops,
      seconds: micros / US_PER_SEC,
      rate: (ops * US_PER_SEC) / micros,
      p50_ms: p50_us / US_PER_MS,
      p99_ms: p99_us / US_PER_MS,
      wal_bytes_per_op: ((await walBytes(world)) - before) / ops,
      refused,
      broken,
    };
  } finally {
    await server.stop();
  }
}
