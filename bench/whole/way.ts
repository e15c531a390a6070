// A way that a claim can take from HTTP to the ledger: the product, and what people build instead.

import { cpuUs } from '../cpu.ts';
import type { World } from '../world.ts';

export const POOL = 'whole';
/** The way of this checkout. */
export const OURS = 'sluice';

/** One way at work, with its databases. */
export type OpenWay = {
  /** Where it takes claims. */
  port: number;
  /** Process ids by part: what a claim costs is the CPU of all of them. */
  parts: Readonly<Record<string, number>>;
  world: World;
  /** Puts so many more slots on sale. */
  addSlots(count: number): Promise<void>;
  /** True when nothing can be sold until slots are added. */
  isSoldOut(): Promise<boolean>;
  /** True when nothing is on its way to the ledger. */
  isDrained(): Promise<boolean>;
  /** Bytes and dead rows of the tables or keys that claims pass through. */
  bloat(): Promise<{ bytes: number; deadRows: number }>;
  /** The SQL functions that claim a slot and take messages, as its programs call them in DB1; none where DB1 is not its queue. */
  calls?: { claim: string; take: string };
  /** The program that carries claims to the ledger, where it can stand still. */
  worker?: { stall(): void; goOn(): void };
  stop(): Promise<void>;
};

/** `settings` are of both databases, beside those of every suite. */
export type Way = {
  name: string;
  /** What it was given to do its best, for the person who reads the ratios. */
  tuned: readonly string[];
  open(settings?: Record<string, string>): Promise<OpenWay>;
};

/** Opens all, and stops those that are open when one fails. */
export async function withWays<T>(
  [way, ...rest]: readonly Way[],
  settings: Record<string, string>,
  use: (open: readonly OpenWay[]) => Promise<T>,
  open: readonly OpenWay[] = [],
): Promise<T> {
  if (way === undefined) return use(open);
  const one = await way.open(settings);
  try {
    return await withWays(rest, settings, use, [...open, one]);
  } finally {
    await one.stop();
  }
}

/**
 * For the session that looks whether a pool is sold out, fifty times a second. Once the slots are analysed the planner would scan
 * the table from its start, over all that was sold: that took 30 µs a claim of DB1, and no product looks so.
 */
export const LOOK_BY_INDEX = 'set enable_seqscan = off; set enable_bitmapscan = off';

/** CPU so far, by part. */
export function cpuOf({ parts }: OpenWay): Record<string, number> {
  return Object.fromEntries(Object.entries(parts).map(([part, pid]) => [part, cpuUs(pid)]));
}

/** `tables` with their indexes, in DB1. */
export async function bloatOf(
  { db1 }: World,
  tables: readonly string[],
): Promise<{ bytes: number; deadRows: number }> {
  await db1.run('select pg_stat_force_next_flush()');
  const oids = [tables];
  const bytes = await db1.ask<number>(
    'select sum(pg_total_relation_size(t::regclass))::float8 from unnest($1::text[]) t',
    oids,
  );
  const deadRows = await db1.ask<number>(
    'select sum(pg_stat_get_dead_tuples(t::regclass))::float8 from unnest($1::text[]) t',
    oids,
  );
  return { bytes, deadRows };
}
