// One drain: fill, warm up, fill again, run, count, and check that nothing is missing.

import { cpuUs, ownUs, postmasterOf, type Spent, startMeter } from '../cpu.ts';
import { timingOf } from '../stopwatch.ts';
import type { World } from '../world.ts';
import type { Cell } from './plan.ts';
import type { BridgeWorld } from './world.ts';

/** What one drain showed. */
export type DrainSample = ReturnType<typeof timingOf> &
  Spent & {
    wal_bytes_per_op: number;
    db1_wal_bytes_per_op: number;
    db2_wal_bytes_per_op: number;
    /** Made in the tables of the queue, whether or not a vacuum has removed them since. */
    dead_tuples_per_op: number;
  };

/** One text that tells every claim, or ticket, with its slot and its buyer. */
const digest = (table: string, slot: string): string => `
  select count(*) || ' ' || md5(string_agg(claim_id || ' ' || ${slot} || ' ' || user_id, ',' order by claim_id))
  from ${table}`;
const DEAD_TUPLES = `
  select coalesce(sum(n_tup_upd + n_tup_del), 0)::int from pg_stat_all_tables where schemaname = $1`;
/** Messages, claims and slots that are not where a finished drain leaves them. */
const UNFINISHED = `
  select (select count(*) from pgmq.q_intake_queue) + (select count(*) from pgmq.q_intake_dlq)
    + (select count(*) from public.claims c where c.state <> 'committed')
    + (select count(*) from public.inventory_slots s where s.status <> 'CONSUMED')`;

export async function measure(world: BridgeWorld, cell: Cell, warmUpMessages: number): Promise<DrainSample> {
  // Node compiles what is hot, the server's caches fill.
  if (warmUpMessages > 0) await drain(world, { ...cell, messages: warmUpMessages });
  return drain(world, cell);
}

async function drain(world: BridgeWorld, cell: Cell): Promise<DrainSample> {
  const { way, messages } = cell;
  await world.fill(messages, () => way.load?.(world) ?? Promise.resolve());
  const before = await walBytes(world);
  const deadTuples = () => world.db1.ask<number>(DEAD_TUPLES, [way.schema]);
  const deadBefore = await deadTuples();
  const postmasters = await Promise.all([world.db1, world.db2].map(postmasterOf));
  // The messages were put there before: this process is the worker, and nothing sends.
  const system = () => postmasters.reduce((sum, pid) => sum + cpuUs(pid), ownUs());
  const spent = startMeter({ system, load: () => 0 });
  const drained = await way.run(world, cell);
  const cpu = spent(messages);
  await world.quiet();
  const after = await walBytes(world);
  await check(world, cell);
  const [db1 = 0, db2 = 0] = after.map((bytes, at) => (bytes - (before[at] ?? 0)) / messages);
  return {
    ...timingOf(drained, messages),
    ...cpu,
    wal_bytes_per_op: db1 + db2,
    db1_wal_bytes_per_op: db1,
    db2_wal_bytes_per_op: db2,
    dead_tuples_per_op: ((await deadTuples()) - deadBefore) / messages,
  };
}

function walBytes({ db1, db2 }: World): Promise<number[]> {
  return Promise.all([db1, db2].map((session) => session.walBytes()));
}

/** Every claim has its ticket, with its own slot and buyer, and every ticket has its claim. */
async function check({ db1, db2 }: World, { name, way, messages }: Cell): Promise<void> {
  const claims = await db1.ask<string>(digest('public.claims', 'slot_id'));
  const tickets = await db2.ask<string>(digest('public.confirmed_tickets', 'resource_id'));
  if (!claims.startsWith(`${messages} `) || claims !== tickets)
    throw new Error(`${name}: ${messages} messages, claims ${claims}, tickets ${tickets}`);
  if (!way.endsClaims) return;
  const unfinished = Number(await db1.ask(UNFINISHED));
  if (unfinished > 0) throw new Error(`${name}: ${unfinished} messages, claims or slots are not finished`);
}
