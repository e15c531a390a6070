// A way that a claim can take from HTTP to the ledger: the product, and what people build instead.

import type { World } from '../world.ts';

export const POOL = 'whole';

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
  stop(): Promise<void>;
};

export type Way = { name: string; open(): Promise<OpenWay> };

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
