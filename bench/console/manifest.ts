// What each index that a search needs on the manifest costs a slot, once, when it is put on sale: the same slots with all indexes and
// without one of them. Each try is rolled back, so all meet the same tables.

import { cpuUs, postmasterOf } from '../cpu.ts';
import { type Column, column, makeTable, NAME } from '../rows.ts';
import { median } from '../stats.ts';
import type { Row } from '../suite.ts';
import type { World } from '../world.ts';

/** Those of db1/…/20260224100022_search.sql. */
const INDEXES = ['slot_manifest_by_tail', 'slot_manifest_by_label'] as const;
const POOL = 'bench manifest';

interface Size {
  readonly slots: number;
  readonly rounds: number;
}
const FULL: Size = { slots: 50_000, rounds: 5 };
const QUICK: Size = { slots: 500, rounds: 1 };

const COLUMNS: Column[] = [
  NAME,
  column('slots', 'slots'),
  { heading: 'µs a slot', text: (row) => Number(row.us_per_slot).toFixed(1) },
  { heading: 'CPU µs', text: (row) => Number(row.slot_cpu_us).toFixed(1) },
  column('WAL bytes', 'wal_bytes_per_op'),
  {
    heading: 'index bytes',
    text: (row) => (row.index_bytes === undefined ? '' : Number(row.index_bytes).toFixed(0)),
  },
];

export const isManifest = (row: Row): boolean => row.us_per_slot !== undefined;
export const manifestTable = (rows: readonly Row[]): string => makeTable(COLUMNS, rows);

interface Put {
  readonly ms: number;
  readonly wal: number;
  readonly cpuUs: number;
}

/** `without`: the index that the slots do not have to pay for. */
async function put({ db1 }: World, slots: number, without: string | undefined): Promise<Put> {
  const postmaster = await postmasterOf(db1);
  await db1.run('checkpoint');
  await db1.run('begin');
  try {
    if (without !== undefined) await db1.run(`drop index public.${without}`);
    const [wal, cpu, started] = [await db1.walBytes(), cpuUs(postmaster), performance.now()];
    await db1.run(`insert into public.inventory_slots (pool_id, label)
      select '${POOL}', 'Row ' || n / 40 || ', seat ' || n % 40 from generate_series(1, ${slots}) n`);
    const ms = performance.now() - started;
    return { ms, wal: (await db1.walBytes()) - wal, cpuUs: cpuUs(postmaster) - cpu };
  } finally {
    await db1.run('rollback');
  }
}

/** On disk, for each slot that is in it. */
async function bytesOf({ db1 }: World, index: string): Promise<number> {
  return db1.ask<number>(
    `select (pg_relation_size(c.oid) / greatest(1, c.reltuples))::float8 from pg_class c where c.oid = $1::regclass`,
    [`public.${index}`],
  );
}

export async function measureManifest(
  world: World,
  isQuick: boolean,
  progress: (line: string) => void,
): Promise<readonly Row[]> {
  const { slots, rounds } = isQuick ? QUICK : FULL;
  const ways = [undefined, ...INDEXES];
  const seen = new Map<string | undefined, Put[]>(ways.map((way) => [way, []]));
  await put(world, slots, undefined);
  for (let round = 1; round <= rounds; round++) {
    progress(`slots on sale, round ${round} of ${rounds}`);
    for (const [way, puts] of seen) {
      puts.push(await put(world, slots, way));
      await world.db1.run('vacuum public.inventory_slots, public.slot_manifest');
    }
  }
  const rows: Row[] = [];
  for (const [way, puts] of seen) {
    const ms = median(puts.map((one) => one.ms));
    rows.push({
      name: way === undefined ? 'slots-on-sale' : `slots-on-sale without ${way}`,
      ...{ clients: 1, batch: slots, rate: (slots * 1_000) / ms, p50_ms: ms, p99_ms: ms, slots },
      wal_bytes_per_op: median(puts.map((one) => one.wal)) / slots,
      us_per_slot: (ms * 1_000) / slots,
      slot_cpu_us: median(puts.map((one) => one.cpuUs)) / slots,
      ...(way !== undefined && { index_bytes: await bytesOf(world, way) }),
    });
  }
  return rows;
}
