// One way under load, in windows: the buyers come for a minute, the counters are read, the buyers come again; then what is under
// way drains.

import { setTimeout as pause } from 'node:timers/promises';
import type { OpenLoopOrder, OpenLoopReport } from '../open_loop.ts';
import { quantile } from '../stats.ts';
import { sumOfParts } from '../turns.ts';
import { runWrk } from '../wrk/wrk.ts';
import type { Crowd } from './crowd.ts';
import type { Followed, FollowOrder } from './follower.ts';
import { cpuOf, type OpenWay, POOL } from './way.ts';

export type Load = {
  clients: number;
  /** Put on sale at the start; where `refill`, as many again each time they are sold out. */
  slots: number;
  refill: boolean;
  windows: number;
  windowSec: number;
  /** Buyers a second that are followed to their tickets. */
  followedPerSec: number;
  /** As many claims a second, whatever became of the earlier ones; as many as are answered where left out. */
  perSec?: number;
  /** The worker stands still until the last claim: what is measured are claims alone. */
  claimsOnly?: boolean;
};

export type Window = { claims: number; refused: number; seconds: number; cpuUs: number };

export type Measured = {
  claims: number;
  refused: number;
  seconds: number;
  /** From the first claim until the ledger had the last ticket; until the last claim where these alone are measured. */
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

const REFILL_LOOK_MS = 20;
const DRAIN_LOOK_MS = 20;
const DRAIN_MS = 600_000;
const PATIENCE_MS = 10_000;
const MS_PER_SEC = 1_000;
const US_PER_MS = 1_000;
/** A pool that is not refilled must have this many times the slots that its best window sold, for one more window. */
const ROOM = 1.25;

/** `onWindow` hears of each window when it is over. */
export async function measureWay(
  way: OpenWay,
  crowd: Crowd,
  load: Load,
  onWindow: (at: number, window: Window) => void = () => undefined,
): Promise<Measured> {
  const { world } = way;
  const { follower } = crowd;
  if (load.slots > 0) {
    await way.addSlots(load.slots);
    await world.db1.run('vacuum (analyze)');
  }
  const ticketsBefore = await countTickets(way);
  const cpuBefore = cpuOf(way);
  const walBefore = await walOf(way);
  const loadBefore = crowd.spentUs();
  if (load.claimsOnly) way.worker?.stall();
  const refilling = startRefilling(way, load);
  const startMs = performance.now();
  const secondsSoFar = () => (performance.now() - startMs) / MS_PER_SEC;
  await follower.ask({
    port: way.port,
    db2Url: world.db2Url,
    perSec: load.followedPerSec,
  } satisfies FollowOrder);
  const windows: (Window & { p50: number; p99: number })[] = [];
  while (windows.length < load.windows && hasRoom(load, windows)) {
    windows.push(await oneWindow(way, crowd, load, windows.length));
    onWindow(windows.length, windows.at(-1) as Window);
  }
  const seconds = secondsSoFar();
  const cpuThen = cpuOf(way);
  await refilling.stop();
  await follower.ask('stop');
  if (load.claimsOnly) way.worker?.goOn();
  await drained(way);
  const drainedSeconds = secondsSoFar();
  const followed = await follower.ask<Followed>('report');
  const claims = windows.reduce((sum, one) => sum + one.claims, 0) + followed.claimMs.length;
  const refused = windows.reduce((sum, one) => sum + one.refused, 0) + followed.refused;
  const tickets = (await countTickets(way)) - ticketsBefore;
  judge(load, { claims, refused, tickets }, followed);
  const tookMs = [...followed.ticketMs].sort((a, b) => a - b);
  const cpuAfter = load.claimsOnly ? cpuThen : cpuOf(way);
  return {
    ...{ claims, refused, seconds, tickets, windows },
    drainedSeconds: load.claimsOnly ? seconds : drainedSeconds,
    claimP50Ms: quantile(
      windows.map(({ p50 }) => p50).sort((a, b) => a - b),
      0.5,
    ),
    claimP99Ms: Math.max(...windows.map(({ p99 }) => p99)),
    ticketP50Ms: quantile(tookMs, 0.5),
    ticketP99Ms: quantile(tookMs, 0.99),
    partsUs: Object.fromEntries(
      Object.entries(cpuAfter).map(([part, us]) => [part, us - (cpuBefore[part] ?? 0)]),
    ),
    loadUs: crowd.spentUs() - loadBefore,
    walBytes: (await walOf(way)) - walBefore,
    bloat: await way.bloat(),
  };
}

/** A pool that sells out in the middle of a window would answer faster, and sell nothing. */
export function hasRoom({ refill, slots, perSec }: Load, windows: readonly Window[]): boolean {
  if (refill || perSec !== undefined || slots === 0 || windows.length === 0) return true;
  const sold = windows.reduce((sum, { claims }) => sum + claims, 0);
  return slots - sold > ROOM * Math.max(...windows.map(({ claims }) => claims));
}

async function oneWindow(way: OpenWay, crowd: Crowd, load: Load, at: number) {
  const before = sumOfParts(cpuOf(way));
  const sold = await (load.perSec === undefined
    ? sellByWrk(way, crowd, load, at)
    : sellAtPace(way, crowd, load));
  if (sold.broken > 0) throw new Error(`${sold.broken} requests got no answer`);
  return { ...sold, cpuUs: sumOfParts(cpuOf(way)) - before };
}

const PATH = `/v1/pools/${POOL}/claims`;

async function sellByWrk({ port }: OpenWay, { wrk }: Crowd, load: Load, at: number) {
  const result = await runWrk({
    wrk,
    script: 'claim.lua',
    args: [PATH, `${process.pid}_${Date.now()}_${at}`],
    url: `http://127.0.0.1:${port}`,
    connections: load.clients,
    seconds: load.windowSec,
  });
  return {
    claims: result.requests - result.refused,
    refused: result.refused,
    broken: result.broken,
    seconds: result.micros / 1e6,
    p50: result.p50_us / US_PER_MS,
    p99: result.p99_us / US_PER_MS,
  };
}

async function sellAtPace({ port }: OpenWay, { sender }: Crowd, { clients, perSec = 0, windowSec }: Load) {
  const order: OpenLoopOrder = {
    ...{ port, path: PATH, connections: clients, perSec, seconds: windowSec, patienceMs: PATIENCE_MS },
  };
  const { claims, refused, broken, seconds, p50Ms, p99Ms } = await sender.ask<OpenLoopReport>(order);
  return { claims, refused, broken, seconds, p50: p50Ms, p99: p99Ms };
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

export async function drained(way: OpenWay): Promise<void> {
  const deadline = performance.now() + DRAIN_MS;
  while (!(await way.isDrained())) {
    if (performance.now() > deadline) throw new Error('claims are still on their way after ten minutes');
    await pause(DRAIN_LOOK_MS);
  }
}

type Counts = { claims: number; refused: number; tickets: number };

/** wrk leaves in the middle of its last requests: what was claimed for them is a ticket that no answer told of. */
export function judge(
  { refill }: Load,
  { claims, refused, tickets }: Counts,
  { failed, lateMs }: Followed,
): void {
  if (tickets < claims)
    throw new Error(`${claims} claims were acknowledged, the ledger has ${tickets} tickets`);
  if (!refill && refused > 0) throw new Error(`${refused} claims were refused: the pool is too small`);
  if (failed.length > 0) throw new Error(`${failed.length} followed claims failed: ${failed[0]}`);
  if (lateMs.length > 0) throw new Error(`${lateMs.length} followed claims have no ticket`);
}

export const countTickets = ({ world }: OpenWay): Promise<number> =>
  world.db2.ask<number>('select count(*)::float8 from public.confirmed_tickets');
const walOf = async ({ world }: OpenWay): Promise<number> =>
  (await world.db1.walBytes()) + (await world.db2.walBytes());
