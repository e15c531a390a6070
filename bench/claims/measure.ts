// One run of one way: fill, run, count.

import { randomBytes } from 'node:crypto';
import { runPgbench } from '../pgbench.ts';
import { startOurs } from '../servers.ts';
import { type Finished, type Sample, summarise } from '../stats.ts';
import { runWrk, sampleOfWrk } from '../wrk/wrk.ts';
import { startPlainServer } from './plain_server.ts';
import type { Cell, Way } from './plan.ts';
import type { ClaimsWorld, Design } from './world.ts';

type PgbenchWay = { script: string; design: Design; indexed?: boolean };

const USER = '\\set user random(1, 1000000000)\n';
/** Dividing by zero ends a client of pgbench when the pool is sold out. */
const claimed = (isClaimed: string): string => `select 1 / (${isClaimed})::int;`;
const PLAIN = `plain.claim_resource_and_queue('bench', 'user_' || :user)`;
const OURS = `public.claim_resource_and_queue('bench', 'user_' || :user)`;
const CLAIM_PLAIN = `${USER}${claimed(`${PLAIN} is not null`)}`;
const ASK_PLAIN = `${USER}select ${PLAIN};`;

const PGBENCH_WAYS: Partial<Record<Way, PgbenchWay>> = {
  baseline: { script: CLAIM_PLAIN, design: 'plain' },
  'baseline-indexed': { script: CLAIM_PLAIN, design: 'plain', indexed: true },
  single: { script: `${USER}${claimed(`${OURS} is not null`)}`, design: 'ours' },
  'single-request-id': {
    script: `${USER}\\set request random(1, 1000000000000000)\n${claimed(
      `public.claim_resource_and_queue('bench', 'user_' || :user, 'request_' || :request) is not null`,
    )}`,
    design: 'ours',
  },
  batch: { script: claimed('bench.claim_many(:size, false) > 0'), design: 'ours' },
  'batch-request-id': { script: claimed('bench.claim_many(:size, true) > 0'), design: 'ours' },
  // One row, one commit: nothing durable is faster one by one.
  floor: { script: `${USER}insert into plain.floor (payload) values ('user_' || :user);`, design: 'plain' },
  'sold-out-baseline': { script: ASK_PLAIN, design: 'plain' },
  'sold-out-baseline-indexed': { script: ASK_PLAIN, design: 'plain', indexed: true },
  'sold-out': { script: `${USER}select ${OURS};`, design: 'ours' },
};

const CLAIM_PATH = '/v1/pools/bench/claims';
/** Node compiles what is hot, connections fill their caches. */
const HTTP_WARM_UP_SEC = 1;
/** A small pool is gone in a moment: many of them, on one connection, make a rate. */
const SMALL_POOLS = 10;
const SELL_OUT_BATCH = 1_000;
const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;

export async function measure(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const way = PGBENCH_WAYS[cell.name];
  if (way !== undefined) return measurePgbench(world, cell, way);
  if (cell.name === 'batch-small-pool' || cell.name === 'batch-large-pool') return measurePool(world, cell);
  return measureHttp(world, cell);
}

/** Sells both pools to the last slot without autovacuum, so the statistics are those of full tables. */
export async function sellOut(world: ClaimsWorld, slots: number): Promise<void> {
  await world.db1.rows('bench.set_autovacuum', { p_on: false });
  await world.fill('plain', slots);
  await world.db1.rows('bench.sell_plain');
  await world.fill('ours', slots);
  while ((await claimMany(world, SELL_OUT_BATCH)) > 0);
}

function claimMany(world: ClaimsWorld, size: number): Promise<number> {
  return world.db1.value<number>('bench.claim_many', { p_size: size, p_with_request_ids: false });
}

async function measurePgbench(world: ClaimsWorld, cell: Cell, way: PgbenchWay): Promise<Sample> {
  if (!cell.keep) await world.fill(way.design, cell.slots);
  const before = await world.db1.walBytes();
  const finished = await runPgbench({
    pgbench: world.tools.pgbench,
    url: way.indexed ? world.indexedUrl : world.db1Url,
    script: way.script,
    clients: cell.clients,
    maxSec: cell.maxSec,
    size: cell.batch,
  });
  const ops = finished.length * cell.batch;
  const sample: Sample = {
    ...summarise(finished, cell.batch),
    wal_bytes_per_op: ((await world.db1.walBytes()) - before) / ops,
  };
  return cell.slots > 0 && !cell.keep ? { ...sample, sold_part: ops / cell.slots } : sample;
}

/** On one connection that stays: only the claims are timed, not the filling between two small pools. */
async function measurePool(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const pools = cell.name === 'batch-small-pool' ? SMALL_POOLS : 1;
  const finished: Finished[] = [];
  let wal = 0;
  let clockUs = 0;
  for (let pool = 0; pool < pools; pool++) {
    if (!cell.keep) await world.fill('ours', cell.slots);
    const before = await world.db1.walBytes();
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
    wal += (await world.db1.walBytes()) - before;
  }
  return { ...summarise(finished, cell.batch), wal_bytes_per_op: wal / (finished.length * cell.batch) };
}

async function measureHttp(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const isOurs = cell.name === 'http-coalesced';
  await world.fill(isOurs ? 'ours' : 'plain', cell.slots);
  const plainUrl = cell.name === 'http-indexed' ? world.indexedUrl : world.db1Url;
  const server = await (isOurs ? startOurs(world) : startPlainServer(plainUrl));
  try {
    const send = (seconds: number) =>
      runWrk({
        ...{ wrk: world.tools.wrk, script: 'claim.lua', url: server.url, connections: cell.clients, seconds },
        args: [CLAIM_PATH, randomBytes(4).toString('hex')],
      });
    await send(HTTP_WARM_UP_SEC);
    const before = await world.db1.walBytes();
    const sample = sampleOfWrk(await send(cell.maxSec));
    return { ...sample, wal_bytes_per_op: ((await world.db1.walBytes()) - before) / sample.ops };
  } finally {
    await server.stop();
  }
}
