import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Outcome } from '../run/outcome.ts';
import { splitStatements } from '../tidy/sql_scan.ts';
import { createTapReader } from './tap.ts';

/** Where `supabase test db` looks for names; pgTAP itself lives in extensions. */
const SEARCH_PATH = 'public, extensions';
const STATEMENT_TIMEOUT_MS = 60_000;
const CONTEXT_CHARS_MAX = 400;

/**
 * Runs one pgTAP file on a connection of its own, statement by statement: an error then has a line, and the tests
 * before it are counted. The file opens and rolls back its own transaction, as `supabase test db` expects.
 */
export async function runTapFile(root: string, path: string, url: string): Promise<Outcome> {
  const tap = createTapReader(path);
  const client = new pg.Client({
    connectionString: url,
    application_name: `pgtap ${path}`,
    options: `-c search_path=${SEARCH_PATH.replace(' ', '')}`,
    statement_timeout: STATEMENT_TIMEOUT_MS,
  });
  let lost: Error | undefined;
  client.on('error', (error) => {
    lost = error;
  });
  await client.connect();
  try {
    for (const { sql, line } of splitStatements(readFileSync(join(root, path), 'utf8'))) {
      try {
        const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
        for (const value of rows.flat()) if (typeof value === 'string') tap.read(value, line);
      } catch (error) {
        tap.fail(line, explain(error, sql));
        // The transaction is aborted: every further statement would only repeat that.
        break;
      }
    }
  } finally {
    await client.end();
  }
  if (lost !== undefined) tap.fail(1, `the connection was lost: ${lost.message}`);
  return tap.finish();
}

function explain(error: unknown, sql: string): string {
  const statement = sql.length > CONTEXT_CHARS_MAX ? `${sql.slice(0, CONTEXT_CHARS_MAX)} …` : sql;
  if (!(error instanceof pg.DatabaseError)) return `${error}\n${statement}`;
  const parts = [
    `${error.message} (SQLSTATE ${error.code})`,
    error.detail,
    error.hint,
    error.where,
    statement,
  ];
  return parts.filter((part) => part !== undefined).join('\n');
}
