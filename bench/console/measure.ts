// One burst, with or without console tabs, against the real server in this process.

import { fileURLToPath } from 'node:url';
import type { Spent } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { type Sample, summarise } from '../stats.ts';
import { type Session, settle } from '../world.ts';
import type { BuyersOrder, BuyersReport } from './buyers.ts';
import type { TabsOrder, TabsReport } from './tabs.ts';

export const POOL = 'bench';
const BUYERS = fileURLToPath(new URL('./buyers.ts', import.meta.url));
const TABS = fileURLToPath(new URL('./tabs.ts', import.meta.url));

export type Burst = Omit<Sample, keyof Spent> &
  Partial<TabsReport> & {
    /** What the server's process took of the processors: it says the same on a machine that is busy with other things. */
    server_cpu_us_per_op: number;
  };

export interface Plan {
  readonly claims: number;
  readonly connections: number;
  readonly tabs: number;
}

export interface Place {
  readonly db1: Session;
  readonly port: number;
  readonly cookie: string;
}

/** A full pool, nothing on the queue, and the statistics that a live system would have. */
async function fill({ db1 }: Place, slots: number): Promise<void> {
  await db1.run(`
    truncate public.inventory_slots, public.claims, public.slot_manifest, intake.pool_totals, pgmq.q_intake_queue;
    insert into public.engine_config (pool_id) values ('${POOL}') on conflict do nothing;
    insert into public.inventory_slots (pool_id) select '${POOL}' from generate_series(1, ${slots})`);
  await settle(db1, 'public.inventory_slots, public.claims, public.slot_manifest, pgmq.q_intake_queue');
}

async function buy(place: Place, plan: Plan, claims: number): Promise<BuyersReport> {
  const buyers = new Forked(BUYERS);
  const order: BuyersOrder = {
    port: place.port,
    path: `/v1/pools/${POOL}/claims`,
    connections: plan.connections,
    claims,
    run: String(process.hrtime.bigint()),
  };
  const report = await buyers.ask<BuyersReport>(order);
  await buyers.end();
  return report;
}

/** For Node, which compiles what is hot, and for the connections. */
export async function warmUp(place: Place, plan: Plan): Promise<void> {
  await fill(place, plan.claims + plan.connections);
  await buy(place, plan, plan.claims);
}

export async function measureBurst(place: Place, plan: Plan, hasTabs: boolean): Promise<Burst> {
  await fill(place, plan.claims + plan.connections);
  const tabs = hasTabs ? new Forked(TABS) : undefined;
  const { port, cookie } = place;
  await tabs?.ask({ port, cookie, tabs: plan.tabs } satisfies TabsOrder);
  await tabs?.ask('burst');
  const before = await place.db1.walBytes();
  const cpuBefore = process.cpuUsage();
  const { finished, refused } = await buy(place, plan, plan.claims);
  const { user, system } = process.cpuUsage(cpuBefore);
  const wal = (await place.db1.walBytes()) - before;
  const heard = await tabs?.ask<TabsReport>('end');
  await tabs?.end();
  await check(place, finished.length - refused);
  return {
    ...summarise(finished, 1),
    wal_bytes_per_op: wal / finished.length,
    server_cpu_us_per_op: (user + system) / finished.length,
    refused,
    ...heard,
  };
}

async function check({ db1 }: Place, claimed: number): Promise<void> {
  const claims = await db1.ask<number>('select count(*)::int from public.claims');
  if (claims !== claimed) throw new Error(`${claimed} answers of 201 and ${claims} claims`);
}
