// One burst, with or without console tabs, against the real server in this process.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { cleanUpOnExit } from '../../test/support/databases.ts';
import { type Sample, summarise } from '../stats.ts';
import type { BuyersOrder, BuyersReport } from './buyers.ts';
import type { FromParent, TabsOrder, TabsReport } from './tabs.ts';

export const POOL = 'bench';
const BUYERS = fileURLToPath(new URL('./buyers.ts', import.meta.url));
const TABS = fileURLToPath(new URL('./tabs.ts', import.meta.url));

export type Burst = Sample &
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
  readonly client: pg.Client;
  readonly port: number;
  readonly cookie: string;
}

/** A program of ours that talks: it ends when it was told to, or when we do. */
class Helper {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #forget: () => void;

  constructor(file: string) {
    this.#child = fork(file, { execArgv: ['--import', 'tsx'] });
    this.#forget = cleanUpOnExit(() => this.#child.kill('SIGKILL'));
    this.#ended = once(this.#child, 'exit');
  }

  async ask<Answer>(message: FromParent | BuyersOrder): Promise<Answer> {
    const answered = once(this.#child, 'message') as Promise<[Answer]>;
    this.#child.send(message);
    const [answer] = await Promise.race([
      answered,
      this.#ended.then(() => Promise.reject(new Error('a helper of the bench ended early'))),
    ]);
    return answer;
  }

  async end(): Promise<void> {
    await this.#ended;
    this.#forget();
  }
}

/** A full pool, nothing on the queue, and the statistics that a live system would have. */
async function fill({ client }: Place, slots: number): Promise<void> {
  await client.query(
    'truncate public.inventory_slots, public.claims, public.slot_manifest, intake.pool_totals, pgmq.q_intake_queue',
  );
  await client.query('insert into public.engine_config (pool_id) values ($1) on conflict do nothing', [POOL]);
  await client.query(
    'insert into public.inventory_slots (pool_id) select $1 from generate_series(1, $2::int)',
    [POOL, slots],
  );
  await client.query(
    'vacuum (analyze) public.inventory_slots, public.claims, public.slot_manifest, pgmq.q_intake_queue',
  );
  await client.query('checkpoint');
}

async function walBytes({ client }: Place): Promise<number> {
  const { rows } = await client.query(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
  );
  return rows[0].bytes;
}

async function buy(place: Place, plan: Plan, claims: number): Promise<BuyersReport> {
  const buyers = new Helper(BUYERS);
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
  const tabs = hasTabs ? new Helper(TABS) : undefined;
  const { port, cookie } = place;
  await tabs?.ask({ port, cookie, tabs: plan.tabs } satisfies TabsOrder);
  await tabs?.ask('burst');
  const before = await walBytes(place);
  const cpuBefore = process.cpuUsage();
  const { finished, refused } = await buy(place, plan, plan.claims);
  const { user, system } = process.cpuUsage(cpuBefore);
  const wal = (await walBytes(place)) - before;
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

async function check({ client }: Place, claimed: number): Promise<void> {
  const { rows } = await client.query('select count(*)::int as claims from public.claims');
  if (rows[0].claims !== claimed) throw new Error(`${claimed} answers of 201 and ${rows[0].claims} claims`);
}
