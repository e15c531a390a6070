// Two clusters with durability on; on DB1 the other systems' queues stand beside ours.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { statementFor } from '../../src/db/statement.ts';
import { startDatabases } from '../../test/support/databases.ts';
import { DURABLE } from '../durability.ts';
import { installGraphileWorker } from './graphile_worker.ts';
import { installPgBoss } from './pg_boss.ts';

/** Calls a SQL function; `value` is the first column of its first row. */
export type Session = {
  rows<T>(functionName: string, args?: Record<string, unknown>): Promise<T[]>;
  value<T>(functionName: string, args?: Record<string, unknown>): Promise<T>;
};

export type World = {
  db1Url: string;
  db2Url: string;
  db1: Session;
  db2: Session;
  /** Fresh claims with their messages, an empty ledger, clean tables, a checkpoint. */
  fill(messages: number, load?: () => Promise<void>): Promise<void>;
  /** Returns when all connections but our own have ended. */
  quiet(): Promise<void>;
  stop(): Promise<void>;
};

// Autovacuum wakes once a minute, in the middle of some drain or other; no drain here is that long.
const SETTINGS = { ...DURABLE, autovacuum: 'off' };
const QUIET_POLL_MS = 10;

export function sql(file: string): string {
  return readFileSync(new URL(`../sql/${file}`, import.meta.url), 'utf8');
}

export async function createWorld(): Promise<World> {
  const databases = await startDatabases({ settings: SETTINGS });
  const [db1Url, db2Url] = [databases.db1.url, databases.db2.url];
  const client1 = new pg.Client({ connectionString: db1Url, application_name: 'sluice bench' });
  const client2 = new pg.Client({ connectionString: db2Url, application_name: 'sluice bench' });
  try {
    await Promise.all([client1.connect(), client2.connect()]);
    await installGraphileWorker(db1Url);
    await installPgBoss(db1Url);
    for (const file of ['baseline.sql', 'setup.sql', 'bridge_db1.sql']) await client1.query(sql(file));
    await client2.query(sql('bridge_db2.sql'));
  } catch (error) {
    await databases.stop();
    throw error;
  }
  const [db1, db2] = [createSession(client1), createSession(client2)];
  return {
    db1Url,
    db2Url,
    db1,
    db2,
    async fill(messages, load) {
      await db1.rows('bench.fill_messages', { p_messages: messages });
      await db2.rows('bench.clear_tickets');
      await load?.();
      for (const file of ['bridge_vacuum.sql', 'checkpoint.sql'])
        await Promise.all([client1.query(sql(file)), client2.query(sql(file))]);
      await db1.rows('bench.tell_statistics');
    },
    async quiet() {
      while (Number(await db1.value('bench.other_sessions')) > 0) await sleep(QUIET_POLL_MS);
    },
    async stop() {
      await Promise.all([client1.end(), client2.end()]);
      await databases.stop();
    },
  };
}

function createSession(client: pg.Client): Session {
  const rows = async <T>(functionName: string, args: Record<string, unknown> = {}): Promise<T[]> => {
    const { name, text } = statementFor(functionName, Object.keys(args));
    return (await client.query({ name, text, values: Object.values(args) })).rows;
  };
  return {
    rows,
    value: async <T>(functionName: string, args?: Record<string, unknown>): Promise<T> => {
      const [row] = await rows<Record<string, T>>(functionName, args);
      return Object.values(row ?? {})[0] as T;
    },
  };
}
