// The databases a suite works on: two clusters of its own with durability on, and a connection to each.

import { readFileSync } from 'node:fs';
import pg from 'pg';
import { statementFor } from '../src/db/statement.ts';
import { startDatabases } from '../test/support/databases.ts';
import { DURABLE, readSettings } from './durability.ts';

type Args = Record<string, unknown>;

/** A connection of the bench's own. */
export type Session = {
  /** Calls a SQL function. */
  rows<T>(functionName: string, args?: Args): Promise<T[]>;
  /** The same; the first column of its first row. */
  value<T>(functionName: string, args?: Args): Promise<T>;
  /** A statement; the first column of its first row. */
  ask<T>(statement: string, values?: unknown[]): Promise<T>;
  /** Several statements, of which nothing is wanted. */
  run(script: string): Promise<void>;
  /** How many bytes were ever written to the write-ahead log. */
  walBytes(): Promise<number>;
  settings(): Promise<Record<string, string>>;
};

export type World = {
  db1Url: string;
  db2Url: string;
  db1: Session;
  db2: Session;
  stop(): Promise<void>;
};

/** The bench's own SQL functions, a file a suite and database. */
export function sql(file: string): string {
  return readFileSync(new URL(`./sql/${file}`, import.meta.url), 'utf8');
}

/** Made ready by `prepare`; nothing keeps running where that fails. `root` is another checkout, whose migrations count. */
export async function openWorld(
  settings: Record<string, string>,
  prepare: (world: World) => Promise<void>,
  root?: string,
): Promise<World> {
  const databases = await startDatabases({ settings: { ...DURABLE, ...settings }, ...(root && { root }) });
  const [db1Url, db2Url] = [databases.db1.url, databases.db2.url];
  const clients = [db1Url, db2Url].map(
    (connectionString) => new pg.Client({ connectionString, application_name: 'sluice bench' }),
  );
  const [db1, db2] = clients.map(sessionOf) as [Session, Session];
  const stop = async (): Promise<void> => {
    await Promise.allSettled(clients.map((client) => client.end()));
    await databases.stop();
  };
  const world: World = { db1Url, db2Url, db1, db2, stop };
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await prepare(world);
    return world;
  } catch (error) {
    await stop();
    throw error;
  }
}

export function sessionOf(client: pg.Client): Session {
  const rows = async <T>(functionName: string, args: Args = {}): Promise<T[]> => {
    const { name, text } = statementFor(functionName, Object.keys(args));
    return (await client.query({ name, text, values: Object.values(args) })).rows;
  };
  const ask = async <T>(statement: string, values?: unknown[]): Promise<T> =>
    first((await client.query(statement, values)).rows);
  return {
    rows,
    value: async <T>(functionName: string, args?: Args) => first<T>(await rows(functionName, args)),
    ask,
    async run(script) {
      await client.query(script);
    },
    walBytes: () => ask(`select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8`),
    settings: () => readSettings(client),
  };
}

function first<T>([row]: readonly object[]): T {
  return Object.values(row ?? {})[0] as T;
}

/**
 * Everything, catalogs too, so that the next run meets clean tables and fresh statistics; then a checkpoint, so that every run
 * starts with the same amount of unwritten pages and none meets another's.
 */
export async function settle(session: Session, tables = ''): Promise<void> {
  await session.run(`vacuum (analyze) ${tables}`);
  await session.run('checkpoint');
}
