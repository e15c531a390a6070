import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { primaryOf } from '../db/primary.ts';
import { PROGRAM_ROOT } from '../project_root.ts';

/** A script of ours; the path is as seen from here. Statements of a line or two stand beside their caller. */
export function sqlFile(path: string): string {
  return readFileSync(join(PROGRAM_ROOT, 'migrate', path), 'utf8');
}

/** As a number: 150004 is 15.4. */
export async function serverVersion(client: pg.Client): Promise<number> {
  const { rows } = await client.query("select current_setting('server_version_num')::integer as version");
  return rows[0].version;
}

/** Runs `work` on a connection of its own. With `timeoutMs` neither the connection nor a statement may take longer. */
export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
  timeoutMs?: number,
): Promise<T> {
  const client = new pg.Client({
    connectionString: await primaryOf(url),
    application_name: 'sluice stack',
    ...(timeoutMs !== undefined && { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs }),
  });
  // A connection that breaks while idle reports here; the statement that follows then fails with the reason.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
