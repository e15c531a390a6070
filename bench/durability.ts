// Every suite measures with durability on, and its result says so.

import type pg from 'pg';

export const DURABLE = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' };

/** As the server has them, not as it was asked for them. */
export async function readSettings(client: pg.Client): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    `select name, setting from pg_settings where name = any ($1) or name = 'server_version'`,
    [Object.keys(DURABLE)],
  );
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}
