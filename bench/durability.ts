// Every suite of the bench measures with durability on, and every result says what the server had.

import type pg from 'pg';

export const DURABLE = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' };

/** What durability and speed hang on. */
const NAMES = [
  ...['server_version', ...Object.keys(DURABLE), 'wal_sync_method', 'wal_level', 'wal_writer_delay'],
  ...['wal_compression', 'max_wal_size', 'commit_delay', 'checkpoint_timeout', 'autovacuum'],
  ...['shared_buffers', 'work_mem', 'jit'],
];

/** As the server has them, not as it was asked for them. */
export async function readSettings(client: pg.Client): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    `select name, setting || coalesce(' ' || unit, '') as setting from pg_settings where name = any ($1) order by name`,
    [NAMES],
  );
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}
