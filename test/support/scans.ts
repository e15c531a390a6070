// How many rows the server reads by sequential scans: what no hot statement may do.

import type { Session } from './sessions.ts';

type Reads = Record<string, number>;

async function rowsReadInSequence(session: Session, tables: string[]): Promise<Reads> {
  await session.value('select pg_stat_force_next_flush()');
  const rows = await session.rows<{ name: string; rows: string }>(
    `select t.name, t.rows from (
       select schemaname || '.' || relname as name, seq_tup_read as rows from pg_stat_user_tables
     ) t where t.name = any ($1)`,
    [tables],
  );
  return Object.fromEntries(rows.map(({ name, rows: read }) => [name, Number(read)]));
}

/** How many rows `work` makes the server read by sequential scans, table by table. */
export async function scannedBy(
  session: Session,
  work: () => Promise<unknown>,
  tables: string[],
): Promise<Reads> {
  const before = await rowsReadInSequence(session, tables);
  await work();
  const after = await rowsReadInSequence(session, tables);
  return Object.fromEntries(tables.map((table) => [table, (after[table] ?? 0) - (before[table] ?? 0)]));
}
