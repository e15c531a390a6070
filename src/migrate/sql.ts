import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { PROGRAM_ROOT } from '../project_root.ts';

/** SQL that is no function of a database lives in .sql files, never in strings; the path is as seen from here. */
export function sqlFile(path: string): string {
  return readFileSync(join(PROGRAM_ROOT, 'migrate', path), 'utf8');
}

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'sluice stack' });
  // A connection that breaks while idle reports here; the statement that follows then fails with the reason.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
