// Payments on their way: ten thousand that wait to be decided at once, and a flow of them.

import { setTimeout as pause } from 'node:timers/promises';
import { cpuUs, postmasterOf } from '../cpu.ts';
import { failuresOf } from '../neighbours/measure.ts';
import { type OpenPlace, THIS, withPlace } from '../neighbours/place.ts';
import { quantile } from '../stats.ts';
import { settle } from '../world.ts';
import { addPaidPool, holdOrders, tellPayments } from './orders.ts';

const POOL = 'paid';
const LOOK_MS = 10;
const LONGEST_MS = 300_000;
const MS_PER_SEC = 1_000;
/** Node compiles what is hot, connections fill their caches, planners learn. */
const WARM_UP = 500;

export type SettleRow = {
  name: 'settle' | 'flow';
  ops: number;
  /** Decisions a second, and tickets. */
  rate: number;
  ticket_rate: number;
  /** Of payments at a steady pace. */
  p50_ms?: number;
  p99_ms?: number;
} & Parts;

/** CPU µs of an order, from its payment to its ticket; in a flow with the event's delivery. */
type Parts = { db1_cpu_us: number; db2_cpu_us: number; worker_cpu_us: number; server_cpu_us: number };

const withOrders = <T>(slots: number, use: (place: OpenPlace) => Promise<T>): Promise<T> =>
  withPlace(THIS, { healthy: 'orders', prepare: (place) => addPaidPool(place, POOL, slots) }, 1, use);

/** From the moment the worker goes on until the last payment is decided, and until the last ticket is there. */
export function measureSettling(count: number, repetitions: number): Promise<SettleRow[]> {
  return withOrders(WARM_UP + count * repetitions, async (place) => {
    await settleOnce(place, Math.min(WARM_UP, count));
    const rows: SettleRow[] = [];
    for (let at = 0; at < repetitions; at++) rows.push(await settleOnce(place, count));
    return rows;
  });
}

async function settleOnce(place: OpenPlace, count: number): Promise<SettleRow> {
  const { db1, db2, worker } = place;
  worker.stall();
  await tellPayments(place, await holdOrders(place, POOL, count));
  for (const session of [db1, db2]) await settle(session);
  const before = await db2.ask<number>('select count(*)::int from public.confirmed_tickets');
  const spent = await metered(place);
  const startMs = performance.now();
  worker.goOn();
  await until(
    async () =>
      !(await db2.ask<boolean>(`select exists (select from public.claim_outbox where state = 'due')`)),
  );
  const decidedMs = performance.now() - startMs;
  await until(
    async () =>
      (await db2.ask<number>('select count(*)::int from public.confirmed_tickets')) - before >= count,
  );
  const ticketsMs = performance.now() - startMs;
  return {
    ...{ name: 'settle', ops: count, rate: (count * MS_PER_SEC) / decidedMs },
    ...{ ticket_rate: (count * MS_PER_SEC) / ticketsMs },
    ...spent(count),
  };
}

/** What each part uses from now on. */
async function metered({ db1, db2, worker, server }: OpenPlace): Promise<(orders: number) => Parts> {
  const pids = [await postmasterOf(db1), await postmasterOf(db2), worker.pid, server.pid];
  const before = pids.map(cpuUs);
  return (orders) => {
    const [one = 0, two = 0, work = 0, serve = 0] = pids.map(
      (pid, at) => (cpuUs(pid) - (before[at] ?? 0)) / orders,
    );
    return { db1_cpu_us: one, db2_cpu_us: two, worker_cpu_us: work, server_cpu_us: serve };
  };
}

async function until(isOver: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + LONGEST_MS;
  while (!(await isOver())) {
    if (performance.now() > untilMs) throw new Error(`not settled within ${LONGEST_MS / MS_PER_SEC} s`);
    await pause(LOOK_MS);
  }
}

/** From the moment an event was due at the endpoint until the ledger has the ticket that it paid for. */
export function measureFlow(count: number, perSec: number): Promise<SettleRow> {
  return withOrders(WARM_UP + count, async (place) => {
    const measure = async (size: number) => {
      const orders = await holdOrders(place, POOL, size);
      return place.measure({ kind: 'orders', orders, count: size, perSec, patienceMs: LONGEST_MS });
    };
    await measure(Math.min(WARM_UP, count));
    for (const session of [place.db1, place.db2]) await settle(session);
    const spent = await metered(place);
    const report = await measure(count);
    if (failuresOf(report) > 0) throw new Error(`payments failed: ${JSON.stringify(report.failures)}`);
    const tookMs = report.tookMs.toSorted((one, other) => one - other);
    return {
      ...{ name: 'flow', ops: count, rate: perSec, ticket_rate: perSec },
      ...{ p50_ms: quantile(tookMs, 0.5), p99_ms: quantile(tookMs, 0.99) },
      ...spent(count),
    };
  });
}
