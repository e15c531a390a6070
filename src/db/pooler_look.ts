// Whether an address leads through a pooler, and of which kind.

import pg from 'pg';
import { primaryOf } from './primary.ts';

/** `session` is also said where the pooler gives no sign of handing servers on. */
export type PoolerKind = 'none' | 'session' | 'transaction';

const CONNECT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = 5_000;
const PID = 'select pg_backend_pid() as pid';

/**
 * A server tells its process id at login; a pooler tells a number of its own. In transaction mode another connection can have the
 * server that has just answered the first one, although the first is still open.
 */
export async function findPooler(url: string): Promise<PoolerKind> {
  const address = await primaryOf(url);
  return withProbe(address, async (first, firstKey) => {
    const before = await pidOf(first);
    if (before === firstKey) return 'none';
    return withProbe(address, async (second) => {
      await second.query('begin');
      const lent = await pidOf(second);
      const after = await pidOf(first);
      await second.query('rollback');
      return lent === before || after !== before ? 'transaction' : 'session';
    });
  });
}

async function pidOf(client: pg.Client): Promise<number> {
  return (await client.query(PID)).rows[0].pid;
}

async function withProbe<T>(
  connectionString: string,
  use: (client: pg.Client, key: number) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString,
    application_name: 'sluice-probe',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client, (client as unknown as { processID: number }).processID);
  } finally {
    await client.end().catch(() => undefined);
  }
}
