// One drain: fill, warm up, fill again, run, count, and check that nothing is missing.

import { quantile } from '../stats.ts';
import type { Cell } from './plan.ts';
import type { World } from './world.ts';

/** What one drain showed. */
export type DrainSample = {
  seconds: number;
  rate: number;
  p50_ms: number;
  p99_ms: number;
  wal_bytes_per_op: number;
  db1_wal_bytes_per_op: number;
  db2_wal_bytes_per_op: number;
  /** On the queue, when the last message was gone. */
  dead_tuples_per_op: number;
};

export async function measure(world: World, cell: Cell, warmUpMessages: number): Promise<DrainSample> {
  // Node compiles what is hot, the server's caches fill.
  if (warmUpMessages > 0) await drain(world, { ...cell, messages: warmUpMessages });
  return drain(world, cell);
}

async function drain(world: World, cell: Cell): Promise<DrainSample> {
  const { way, messages } = cell;
  await world.fill(messages, () => way.load?.(world) ?? Promise.resolve());
  const before = await walBytes(world);
  const { seconds, tookMs } = await way.run(world, cell);
  await world.quiet();
  const after = await walBytes(world);
  await check(world, cell);
  const sorted = tookMs.sort((a, b) => a - b);
  const [db1 = 0, db2 = 0] = after.map((bytes, at) => (bytes - (before[at] ?? 0)) / messages);
  const dead = Number(await world.db1.value('bench.dead_tuples', { p_schema: way.schema }));
  return {
    seconds,
    rate: messages / seconds,
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
    wal_bytes_per_op: db1 + db2,
    db1_wal_bytes_per_op: db1,
    db2_wal_bytes_per_op: db2,
    dead_tuples_per_op: dead / messages,
  };
}

async function walBytes({ db1, db2 }: World): Promise<number[]> {
  return Promise.all([db1, db2].map(async (db) => Number(await db.value('bench.wal_bytes'))));
}

/** Every claim has its ticket, with its own slot and buyer, and there is no other ticket. */
async function check({ db1, db2 }: World, { name, way, messages }: Cell): Promise<void> {
  const claims = await db1.value<string>('bench.claims_digest');
  const tickets = await db2.value<string>('bench.tickets_digest');
  if (!claims.startsWith(`${messages} `) || claims !== tickets)
    throw new Error(`${name}: ${messages} messages, claims ${claims}, tickets ${tickets}`);
  if (!way.endsClaims) return;
  const unfinished = Number(await db1.value('bench.unfinished'));
  if (unfinished > 0) throw new Error(`${name}: ${unfinished} messages, claims or slots are not finished`);
}
