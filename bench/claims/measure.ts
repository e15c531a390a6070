// One run of one way: fill, run, count.

import { randomBytes, randomUUID } from 'node:crypto';
import type { ClaimOutcome } from '#core/claim.ts';
import { type Accounts, cpuUs, endedUs, ownUs, postmasterOf, spentOn, startMeter } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { OPEN_LOOP_CLIENT, type OpenLoopOrder, type OpenLoopReport } from '../open_loop.ts';
import { runPgbench } from '../pgbench.ts';
import { type BenchServer, startOurs } from '../servers.ts';
import { type Finished, type Sample, summarise } from '../stats.ts';
import { membersOf, stubCall } from '../stub.ts';
import { runWrk, sampleOfWrk, type WrkResult } from '../wrk/wrk.ts';
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
  // What no design with a claim row and a message can leave out.
  'batch-insert': { script: claimed('bench.insert_many(:size) > 0'), design: 'ours' },
  // One row, one commit: nothing durable is faster one by one.
  floor: { script: `${USER}insert into plain.floor (payload) values ('user_' || :user);`, design: 'plain' },
  'sold-out-baseline': { script: ASK_PLAIN, design: 'plain' },
  'sold-out-baseline-indexed': { script: ASK_PLAIN, design: 'plain', indexed: true },
  'sold-out': { script: `${USER}select ${OURS};`, design: 'ours' },
};

const CLAIM_PATH = '/v1/pools/bench/claims';
/** Node compiles what is hot, connections fill their caches. */
const HTTP_WARM_UP_SEC = 1;
/** At which the server's best rate is measured before claims come at a part of it. */
const SATURATING_CLIENTS = 256;
const SATURATING_SEC = 3;
/** Of the best rate. */
const OPEN_PART = 0.6;
const OPEN_PATIENCE_MS = 10_000;
/** A small pool is gone in a moment: many of them, on one connection, make a rate. */
const SMALL_POOLS = 10;
const SELL_OUT_BATCH = 1_000;
const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;

export async function measure(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const way = PGBENCH_WAYS[cell.name];
  if (way !== undefined) return measurePgbench(world, cell, way);
  if (cell.name === 'batch-small-pool' || cell.name === 'batch-large-pool') return measurePool(world, cell);
  return cell.name === 'http-open' ? measureOpenLoop(world, cell) : measureHttp(world, cell);
}

/** Sells all slots of a design: the tables and statistics are those of the moment after the sale. */
async function sellOut(world: ClaimsWorld, design: Design): Promise<void> {
  if (design === 'plain') await world.db1.rows('bench.sell_plain');
  else while ((await claimMany(world, SELL_OUT_BATCH)) > 0);
}

function claimMany(world: ClaimsWorld, size: number): Promise<number> {
  return world.db1.value<number>('bench.claim_many', { p_size: size, p_with_request_ids: false });
}

/** Postgres alone is measured. */
async function databaseAccounts({ db1 }: ClaimsWorld, load: () => number): Promise<Accounts> {
  const postmaster = await postmasterOf(db1);
  return { system: () => cpuUs(postmaster), load };
}

/** The server runs in this process, and is measured with Postgres. */
async function serverAccounts({ db1 }: ClaimsWorld, load: () => number): Promise<Accounts> {
  const postmaster = await postmasterOf(db1);
  return { system: () => cpuUs(postmaster) + ownUs(), load };
}

async function measurePgbench(world: ClaimsWorld, cell: Cell, way: PgbenchWay): Promise<Sample> {
  if (!cell.keep) await world.fill(way.design, cell.slots);
  if (cell.soldOut) await sellOut(world, way.design);
  const before = await world.db1.walBytes();
  const spent = startMeter(await databaseAccounts(world, endedUs));
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
    ...spent(ops),
    wal_bytes_per_op: ((await world.db1.walBytes()) - before) / ops,
  };
  if (cell.name === 'batch-insert') await checkInserted(world, ops);
  return cell.slots > 0 && !cell.soldOut ? { ...sample, sold_part: ops / cell.slots } : sample;
}

/** Nothing was left out that a claim has to write. */
async function checkInserted({ db1 }: ClaimsWorld, ops: number): Promise<void> {
  const written = await db1.ask<number>(
    'select count(*)::int from public.claims c join pgmq.q_intake_queue q on q.msg_id = c.msg_id',
  );
  if (written < ops) throw new Error(`${ops} claims were inserted, ${written} have a row and a message`);
}

/** On one connection that stays: only the claims are timed, not the filling between two small pools. */
async function measurePool(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const pools = cell.name === 'batch-small-pool' ? SMALL_POOLS : 1;
  const accounts = await databaseAccounts(world, ownUs);
  const finished: Finished[] = [];
  const all = { cpu_us: 0, load_cpu_us: 0 };
  let wal = 0;
  let clockUs = 0;
  for (let pool = 0; pool < pools; pool++) {
    if (!cell.keep) await world.fill('ours', cell.slots);
    const before = await world.db1.walBytes();
    const spent = startMeter(accounts);
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
    const { cpu_us, load_cpu_us } = spent(1);
    all.cpu_us += cpu_us;
    all.load_cpu_us += load_cpu_us;
    wal += (await world.db1.walBytes()) - before;
  }
  const ops = finished.length * cell.batch;
  return {
    ...summarise(finished, cell.batch),
    ...spentOn(ops, all.cpu_us, all.load_cpu_us),
    wal_bytes_per_op: wal / ops,
  };
}

async function measureHttp(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  const isPlain = cell.name === 'http' || cell.name === 'http-indexed';
  await world.fill(isPlain ? 'plain' : 'ours', cell.slots);
  const goOn = cell.name === 'http-stub' ? stubCall('public.claim_batch', claimedAll) : undefined;
  const plainUrl = cell.name === 'http-indexed' ? world.indexedUrl : world.db1Url;
  const server = await (isPlain ? startPlainServer(plainUrl) : startOurs(world));
  try {
    await sendClaims(world, server, cell.clients, HTTP_WARM_UP_SEC);
    const before = await world.db1.walBytes();
    const spent = startMeter(await serverAccounts(world, endedUs));
    const sample = sampleOfWrk(await sendClaims(world, server, cell.clients, cell.maxSec));
    return {
      ...sample,
      ...spent(sample.ops),
      wal_bytes_per_op: ((await world.db1.walBytes()) - before) / sample.ops,
    };
  } finally {
    await server.stop();
    goOn?.();
  }
}

/** The server's best rate first; then buyers come at a part of it, over connections that stay open. */
async function measureOpenLoop(world: ClaimsWorld, cell: Cell): Promise<Sample> {
  await world.fill('ours', cell.slots);
  const server = await startOurs(world);
  const sender = new Forked(OPEN_LOOP_CLIENT);
  try {
    await sendClaims(world, server, SATURATING_CLIENTS, HTTP_WARM_UP_SEC);
    const seconds = Math.min(SATURATING_SEC, cell.maxSec);
    const best = sampleOfWrk(await sendClaims(world, server, SATURATING_CLIENTS, seconds));
    const offered = best.rate * OPEN_PART;
    const order: OpenLoopOrder = {
      ...{ port: server.port, path: CLAIM_PATH, connections: cell.clients },
      ...{ perSec: offered, seconds: cell.maxSec, patienceMs: OPEN_PATIENCE_MS },
    };
    const before = await world.db1.walBytes();
    const spent = startMeter(await serverAccounts(world, () => cpuUs(sender.pid)));
    const report = await sender.ask<OpenLoopReport>(order);
    return {
      ...openLoopSample(report, offered),
      ...spent(report.claims),
      wal_bytes_per_op: ((await world.db1.walBytes()) - before) / report.claims,
    };
  } finally {
    sender.tell('end');
    await sender.end();
    await server.stop();
  }
}

function openLoopSample({ claims, refused, broken, seconds, p50Ms, p99Ms }: OpenLoopReport, offered: number) {
  const rate = claims / seconds;
  return { ops: claims, seconds, rate, offered_rate: offered, p50_ms: p50Ms, p99_ms: p99Ms, refused, broken };
}

function sendClaims(
  { tools }: ClaimsWorld,
  { url }: BenchServer,
  connections: number,
  seconds: number,
): Promise<WrkResult> {
  return runWrk({
    ...{ wrk: tools.wrk, script: 'claim.lua', url, connections, seconds },
    args: [CLAIM_PATH, randomBytes(4).toString('hex')],
  });
}

/** What public.claim_batch answers when each request gets a slot; its first argument are the pools. */
function claimedAll([pools]: readonly unknown[]): ClaimOutcome[] {
  return membersOf(pools).map((_, at) => ({
    ordinal: at + 1,
    outcome: 'claimed',
    claim_id: randomUUID(),
    resource_id: randomUUID(),
    state: 'queued',
    claimed_at: '2026-02-24T10:00:00.000000Z',
    hold_until: null,
    group_claims: null,
  }));
}
