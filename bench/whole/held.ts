// A transaction elsewhere stays open, so that no vacuum can remove what claims leave behind. Claims come at a fixed pace for half an
// hour; what a claim and a take cost in the last minute is held against the first.

import pg from 'pg';
import { spentOn } from '../cpu.ts';
import type { Forked } from '../forked.ts';
import type { OpenLoopOrder, OpenLoopReport } from '../open_loop.ts';
import { whole } from '../rows.ts';
import { quantile } from '../stats.ts';
import { sumOfParts } from '../turns.ts';
import type { Session } from '../world.ts';
import type { Crowd } from './crowd.ts';
import type { Followed, FollowOrder } from './follower.ts';
import { countTickets, drained } from './measure.ts';
import type { WholeRow } from './rows.ts';
import { cpuOf, type OpenWay, POOL } from './way.ts';

export type HeldPlan = {
  minutes: number;
  /** A minute, but for quick runs. */
  windowSec: number;
  perSec: number;
  connections: number;
  warmUpSec: number;
  followedPerSec: number;
};

/** What one window showed. `ticketP99Ms` only where buyers were followed to their tickets. */
export type Minute = Pick<OpenLoopReport, 'claims' | 'refused' | 'broken' | 'seconds' | 'p50Ms' | 'p99Ms'> & {
  ticketP50Ms?: number;
  ticketP99Ms?: number;
  /** Buffers that a call of the taking function looked at, and those of one claim. */
  takeBuffers: number;
  claimBuffers: number;
  cpuUs: number;
};

export type Held = { minutes: Minute[]; partsUs: Record<string, number>; loadUs: number };

/** Counts what each statement of the programs costs; the same in both designs. */
export const HELD_SETTINGS = { shared_preload_libraries: 'pg_stat_statements' };
const INSTALL = 'create schema statements; create extension pg_stat_statements schema statements';
/** Calls, rows and buffers of a function, as programs call it; some put its name in quotes. */
const STATEMENTS = `
  select array[coalesce(sum(s.calls), 0), coalesce(sum(s.rows), 0), coalesce(sum(s.shared_blks_hit + s.shared_blks_read), 0)]::float8[]
  from statements.pg_stat_statements s
  where replace(s.query, '"', '') like '%' || $1 || '(%'`;
const PATIENCE_MS = 10_000;
const MS_PER_SEC = 1_000;
/** Slots that are left when all have claimed. */
const SPARE = 1.05;

/** `mustDrain`: every acknowledged claim has to be a ticket at the end. */
export async function measureHeld(
  way: OpenWay,
  crowd: Crowd,
  plan: HeldPlan,
  mustDrain: boolean,
  progress: (line: string) => void,
): Promise<Held> {
  const { world } = way;
  const slots = slotsFor(plan);
  progress(`${whole(slots)} slots are put on sale`);
  await way.addSlots(slots);
  await world.db1.run('vacuum (analyze)');
  await world.db1.run(INSTALL);
  const snapshots = [
    await holdSnapshot(world.db1, world.db1Url),
    await holdSnapshot(world.db2, world.db2Url),
  ];
  const order: Omit<OpenLoopOrder, 'seconds'> = {
    ...{ port: way.port, path: `/v1/pools/${POOL}/claims`, connections: plan.connections },
    ...{ perSec: plan.perSec, patienceMs: PATIENCE_MS },
  };
  const send = (seconds: number) => crowd.sender.ask<OpenLoopReport>({ ...order, seconds });
  const ticketsBefore = await countTickets(way);
  const warm = await send(plan.warmUpSec);
  const [cpuBefore, loadBefore] = [cpuOf(way), crowd.spentUs()];
  const minutes: Minute[] = [];
  let followed = 0;
  for (let at = 1; at <= plan.minutes; at++) {
    const follower = at === 1 || at === plan.minutes ? crowd.follower : undefined;
    const { minute, bought } = await oneMinute(way, plan, follower, send);
    minutes.push(minute);
    followed += bought;
    progress(lineOf(at, plan.minutes, minute));
  }
  const partsUs = Object.fromEntries(
    Object.entries(cpuOf(way)).map(([part, us]) => [part, us - (cpuBefore[part] ?? 0)]),
  );
  const loadUs = crowd.spentUs() - loadBefore;
  for (const snapshot of snapshots) await snapshot.release();
  if (mustDrain) {
    await drained(way);
    const claims = [warm, ...minutes].reduce((sum, one) => sum + one.claims, followed);
    const tickets = (await countTickets(way)) - ticketsBefore;
    if (tickets < claims)
      throw new Error(`${claims} claims were acknowledged, the ledger has ${tickets} tickets`);
  }
  return { minutes, partsUs, loadUs };
}

/** All claims of the sender, and those of the buyers who are followed in two minutes. */
export function slotsFor({ perSec, warmUpSec, minutes, windowSec, followedPerSec }: HeldPlan): number {
  const followedSec = 2 * (windowSec + PATIENCE_MS / MS_PER_SEC);
  return Math.ceil(SPARE * (perSec * (warmUpSec + minutes * windowSec) + followedPerSec * followedSec));
}

/** A design that stands still does nothing in a minute; its cost is then all that was spent. */
const atLeastOne = (count: number): number => Math.max(1, count);

async function oneMinute(
  way: OpenWay,
  plan: HeldPlan,
  follower: Forked | undefined,
  send: (seconds: number) => Promise<OpenLoopReport>,
): Promise<{ minute: Minute; bought: number }> {
  const before = await costsOf(way);
  const following = follower && (await follow(way, follower, plan.followedPerSec));
  const cpuBefore = sumOfParts(cpuOf(way));
  const report = await send(plan.windowSec);
  const spentUs = sumOfParts(cpuOf(way)) - cpuBefore;
  const followed = await following?.();
  const after = await costsOf(way);
  const takes = after.take.calls - before.take.calls;
  if (takes === 0) throw new Error(`no call of ${way.calls?.take} was counted`);
  const tookMs = followed?.tookMs ?? [];
  const minute: Minute = {
    ...report,
    broken: report.broken + (followed?.failed ?? 0),
    ...(tookMs.length > 0 && { ticketP50Ms: quantile(tookMs, 0.5), ticketP99Ms: quantile(tookMs, 0.99) }),
    takeBuffers: (after.take.buffers - before.take.buffers) / takes,
    claimBuffers:
      (after.claim.buffers - before.claim.buffers) / atLeastOne(after.claim.rows - before.claim.rows),
    cpuUs: spentUs,
  };
  return { minute, bought: followed?.claims ?? 0 };
}

/** Buyers who are followed to their tickets until the function that it resolves with is called. */
async function follow({ port, world }: OpenWay, follower: Forked, perSec: number) {
  await follower.ask({ port, db2Url: world.db2Url, perSec } satisfies FollowOrder);
  return async (): Promise<{ claims: number; failed: number; tookMs: number[] }> => {
    await follower.ask('stop');
    const followed = await follower.ask<Followed>('report');
    const tookMs = [...followed.ticketMs, ...followed.lateMs].sort((a, b) => a - b);
    return { claims: followed.claimMs.length, failed: followed.failed.length, tookMs };
  };
}

type Calls = { calls: number; rows: number; buffers: number };

async function costsOf({ world, calls }: OpenWay): Promise<{ claim: Calls; take: Calls }> {
  if (calls === undefined) throw new Error('this way has no functions to look at');
  const of = async (name: string): Promise<Calls> => {
    const [count = 0, rows = 0, buffers = 0] = await world.db1.ask<number[]>(STATEMENTS, [name]);
    return { calls: count, rows, buffers };
  };
  return { claim: await of(calls.claim), take: await of(calls.take) };
}

/** A transaction with a snapshot, which stays as it is until it is released. Another session looks whether it did. */
export async function holdSnapshot(
  watcher: Session,
  connectionString: string,
): Promise<{ pid: number; release(): Promise<void> }> {
  const client = new pg.Client({ connectionString, application_name: 'sluice bench held' });
  // A session that is ended from outside tells it at the release.
  client.on('error', () => undefined);
  await client.connect();
  await client.query('begin isolation level repeatable read');
  const pid: number = (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const oldest = () =>
    watcher.ask<string | null>('select backend_xmin::text from pg_stat_activity where pid = $1', [pid]);
  const before = await oldest();
  return {
    pid,
    async release() {
      const after = await oldest();
      if (!before || after !== before)
        throw new Error(`the snapshot was not held: its oldest transaction went from ${before} to ${after}`);
      await client.query('rollback');
      await client.end();
    },
  };
}

function lineOf(
  at: number,
  of: number,
  { claims, seconds, p99Ms, takeBuffers, refused, broken }: Minute,
): string {
  const failed = refused + broken === 0 ? '' : `, ${refused} refused, ${broken} without an answer`;
  return (
    `minute ${at} of ${of}: ${whole(claims / seconds)} claims a second, p99 ${p99Ms.toFixed(1)} ms, ` +
    `${whole(takeBuffers)} buffers a take${failed}`
  );
}

export function heldRow(way: string, plan: HeldPlan, { minutes, partsUs, loadUs }: Held): WholeRow {
  const [first, last] = [minutes[0] as Minute, minutes.at(-1) as Minute];
  const sum = (pick: (minute: Minute) => number) => minutes.reduce((all, one) => all + pick(one), 0);
  const claims = sum((one) => one.claims);
  return {
    ...{ name: 'held', way, clients: plan.connections, minutes: minutes.length, claims },
    rate: claims / sum((one) => one.seconds),
    refused: sum((one) => one.refused),
    broken: sum((one) => one.broken),
    claim_p50_ms: last.p50Ms,
    claim_p99_ms: last.p99Ms,
    first_minute_p99_ms: first.p99Ms,
    last_minute_p99_ms: last.p99Ms,
    ...(last.ticketP50Ms !== undefined && { ticket_p50_ms: last.ticketP50Ms }),
    ...(last.ticketP99Ms !== undefined && { ticket_p99_ms: last.ticketP99Ms }),
    ...(first.ticketP99Ms !== undefined && { first_minute_ticket_p99_ms: first.ticketP99Ms }),
    first_minute_rate: first.claims / first.seconds,
    last_minute_rate: last.claims / last.seconds,
    first_minute_cpu_us: first.cpuUs / atLeastOne(first.claims),
    last_minute_cpu_us: last.cpuUs / atLeastOne(last.claims),
    first_minute_take_buffers: first.takeBuffers,
    last_minute_take_buffers: last.takeBuffers,
    first_minute_claim_buffers: first.claimBuffers,
    last_minute_claim_buffers: last.claimBuffers,
    ...spentOn(atLeastOne(claims), sumOfParts(partsUs), loadUs),
  };
}
