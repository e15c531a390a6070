// One way under load, in windows: wrk sells for a minute, the counters are read, wrk sells again; then what is under way drains.

import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuUs, statOf, US_PER_TICK } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { quantile } from '../stats.ts';
import { runWrk } from '../wrk/wrk.ts';
import type { Followed, FollowOrder } from './follower.ts';
import { type OpenWay, POOL } from './way.ts';

export type Load = {
  clients: number;
  /** Slots on sale at the start; where `refill`, as many again each time they are sold out. */
  slots: number;
  refill: boolean;
  windows: number;
  windowSec: number;
  /** Buyers a second that are followed to their tickets. */
  followedPerSec: number;
  /** Each connection waits so long between two requests: the load is then a part of what is possible. */
  delayMs?: number;
};

export type Window = { claims: number; refused: number; seconds: number; cpuUs: number };

export type Measured = {
  claims: number;
  refused: number;
  seconds: number;
  /** From the first claim until the ledger had the last ticket. */
  drainedSeconds: number;
  tickets: number;
  claimP50Ms: number;
  /** The highest of the windows. */
  claimP99Ms: number;
  ticketP50Ms: number;
  ticketP99Ms: number;
  partsUs: Record<string, number>;
  loadUs: number;
  walBytes: number;
  bloat: { bytes: number; deadRows: number };
  windows: Window[];
};

const FOLLOWER = fileURLToPath(new URL('./follower.ts', import.meta.url));
const REFILL_LOOK_MS = 20;
const DRAIN_LOOK_MS = 20;
const DRAIN_MS = 600_000;
const MS_PER_SEC = 1_000;
const US_PER_MS = 1_000;

export async function measureWay(way: OpenWay, wrk: string, load: Load): Promise<Measured> {
  const { world, parts } = way;
  await way.addSlots(load.slots);
  await world.db1.run('vacuum (analyze)');
  const ticketsBefore = await countTickets(way);
  const cpuBefore = Object.fromEntries(Object.entries(parts).map(([part, pid]) => [part, cpuUs(pid)]));
  const walBefore = await walOf(way);
  const loadBefore = ownUs();
  const follower = new Forked(FOLLOWER);
  const refilling = startRefilling(way, load);
  const startMs = performance.now();
  await follower.ask({
    port: way.port,
    db2Url: world.db2Url,
    perSec: load.followedPerSec,
  } satisfies FollowOrder);
  const windows: (Window & { p50: number; p99: number })[] = [];
  for (let at = 0; at < load.windows; at++) windows.push(await oneWindow(way, wrk, load, at));
  const seconds = (performance.now() - startMs) / MS_PER_SEC;
  await refilling.stop();
  await follower.ask('stop');
  await drained(way);
  const drainedSeconds = (performance.now() - startMs) / MS_PER_SEC;
  const followed = await follower.ask<Followed>('report');
  const followerUs = cpuUs(follower.pid);
  follower.tell('end');
  await follower.end();
  const claims = windows.reduce((sum, one) => sum + one.claims, 0) + followed.claimMs.length;
  const tickets = (await countTickets(way)) - ticketsBefore;
  judge(claims, tickets, followed);
  const tookMs = [...followed.ticketMs].sort((a, b) => a - b);
  return {
    claims,
    refused: windows.reduce((sum, one) => sum + one.refused, 0) + followed.refused,
    seconds,
    drainedSeconds,
    tickets,
    claimP50Ms: quantile(
      windows.map(({ p50 }) => p50).sort((a, b) => a - b),
      0.5,
    ),
    claimP99Ms: Math.max(...windows.map(({ p99 }) => p99)),
    ticketP50Ms: quantile(tookMs, 0.5),
    ticketP99Ms: quantile(tookMs, 0.99),
    partsUs: Object.fromEntries(
      Object.entries(parts).map(([part, pid]) => [part, cpuUs(pid) - (cpuBefore[part] ?? 0)]),
    ),
    loadUs: ownUs() - loadBefore + followerUs,
    walBytes: (await walOf(way)) - walBefore,
    bloat: await way.bloat(),
    windows,
  };
}

async function oneWindow(way: OpenWay, wrk: string, load: Load, at: number) {
  const before = sumUs(way);
  const path = `/v1/pools/${POOL}/claims`;
  const result = await runWrk({
    wrk,
    script: 'claim.lua',
    args: [path, `${process.pid}_${Date.now()}_${at}`, String(load.delayMs ?? 0)],
    url: `http://127.0.0.1:${way.port}`,
    connections: load.clients,
    seconds: load.windowSec,
  });
  if (result.broken > 0) throw new Error(`${result.broken} requests got no answer`);
  return {
    claims: result.requests - result.refused,
    refused: result.refused,
    seconds: result.micros / 1e6,
    cpuUs: sumUs(way) - before,
    p50: result.p50_us / US_PER_MS,
    p99: result.p99_us / US_PER_MS,
  };
}

/** A pool that is opened anew each time it is sold out. */
function startRefilling(way: OpenWay, { refill, slots }: Load): { stop(): Promise<void> } {
  let isOver = !refill;
  const loop = async (): Promise<void> => {
    while (!isOver) {
      if (await way.isSoldOut()) await way.addSlots(slots);
      else await pause(REFILL_LOOK_MS);
    }
  };
  const looping = loop();
  return {
    async stop() {
      isOver = true;
      await looping;
    },
  };
}

async function drained(way: OpenWay): Promise<void> {
  const deadline = performance.now() + DRAIN_MS;
  while (!(await way.isDrained())) {
    if (performance.now() > deadline) throw new Error('claims are still on their way after ten minutes');
    await pause(DRAIN_LOOK_MS);
  }
}

/** wrk leaves in the middle of its last requests: what was claimed for them is a ticket that no answer told of. */
function judge(claims: number, tickets: number, { failed, late }: Followed): void {
  if (tickets < claims)
    throw new Error(`${claims} claims were acknowledged, the ledger has ${tickets} tickets`);
  if (failed.length > 0) throw new Error(`${failed.length} followed claims failed: ${failed[0]}`);
  if (late > 0) throw new Error(`${late} followed claims have no ticket`);
}

const countTickets = ({ world }: OpenWay): Promise<number> =>
  world.db2.ask<number>('select count(*)::float8 from public.confirmed_tickets');
const walOf = async ({ world }: OpenWay): Promise<number> =>
  (await world.db1.walBytes()) + (await world.db2.walBytes());
const sumUs = ({ parts }: OpenWay): number => Object.values(parts).reduce((sum, pid) => sum + cpuUs(pid), 0);
/** Ours and that of wrk, which is our child and has ended. */
const ownUs = (): number => statOf(process.pid).ticks * US_PER_TICK;
