// Two databases with durability on; on DB2 graphile-worker's queue stands beside our events.

import { readFileSync } from 'node:fs';
import pg from 'pg';
import { statementFor } from '../../src/db/statement.ts';
import { startDatabases } from '../../test/support/databases.ts';
import { installGraphileWorker } from '../bridge/graphile_worker.ts';
import { DURABLE } from '../durability.ts';
import { findTools } from '../tools.ts';

export type World = {
  wrk: string;
  db1Url: string;
  db2Url: string;
  webhookId: string;
  rows<T>(functionName: string, args?: Record<string, unknown>): Promise<T[]>;
  /** The first column of the first row. */
  value<T>(functionName: string, args?: Record<string, unknown>): Promise<T>;
  /** No events and no effects; what `load` then puts there is vacuumed and analysed, and a checkpoint is made. */
  clear(load?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
};

export const SECRET = 'whsec_bench';

// Autovacuum wakes once a minute, in the middle of some run or other; no run here is that long.
const SETTINGS = { ...DURABLE, autovacuum: 'off' };

function sql(file: string): string {
  return readFileSync(new URL(`../sql/${file}`, import.meta.url), 'utf8');
}

export async function createWorld(): Promise<World> {
  const { wrk } = await findTools();
  const databases = await startDatabases({ settings: SETTINGS });
  const client = new pg.Client({ connectionString: databases.db2.url, application_name: 'sluice bench' });
  const rows = async <T>(functionName: string, args: Record<string, unknown> = {}): Promise<T[]> => {
    const { name, text } = statementFor(functionName, Object.keys(args));
    return (await client.query({ name, text, values: Object.values(args) })).rows;
  };
  const value = async <T>(functionName: string, args?: Record<string, unknown>): Promise<T> => {
    const [row] = await rows<Record<string, T>>(functionName, args);
    return Object.values(row ?? {})[0] as T;
  };
  try {
    await client.connect();
    await installGraphileWorker(databases.db2.url);
    await client.query(sql('webhooks.sql'));
    const webhookId = await value<string>('webhook.add_endpoint', {
      p_name: 'bench',
      p_provider: 'stripe',
      p_secret_names: ['BENCH_SECRET'],
      p_actor: 'bench',
    });
    return {
      wrk,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      webhookId,
      rows,
      value,
      async clear(load) {
        await rows('bench.clear');
        await load?.();
        await client.query(sql('bridge_vacuum.sql'));
        await client.query(sql('checkpoint.sql'));
      },
      async stop() {
        await client.end();
        await databases.stop();
      },
    };
  } catch (error) {
    await client.end();
    await databases.stop();
    throw error;
  }
}
