// The databases a run works on: both designs side by side in one cluster, durability on.

import { readFileSync } from 'node:fs';
import pg from 'pg';
import { statementFor } from '../../src/db/statement.ts';
import { startDatabases, type TestDatabases } from '../../test/support/databases.ts';
import { DURABLE } from '../durability.ts';
import { findTools, type Tools } from '../tools.ts';

export type Design = 'plain' | 'ours';

export type World = {
  tools: Tools;
  databases: TestDatabases;
  /** As the role whose planner shuns sequential scans. */
  indexedUrl: string;
  /** Calls a SQL function; the value of its first row, which is all the bench asks for. */
  call<T>(functionName: string, args?: Record<string, unknown>): Promise<T>;
  rows<T>(functionName: string): Promise<T[]>;
  /** A fresh pool, with the statistics that a live system would have of it. */
  fill(design: Design, slots: number): Promise<void>;
  stop(): Promise<void>;
};

function sql(file: string): string {
  return readFileSync(new URL(`../sql/${file}`, import.meta.url), 'utf8');
}

export async function createWorld(): Promise<World> {
  const tools = await findTools();
  const databases = await startDatabases({ settings: DURABLE });
  const client = new pg.Client({ connectionString: databases.db1.url, application_name: 'sluice bench' });
  try {
    await client.connect();
    await client.query(sql('baseline.sql'));
    await client.query(sql('setup.sql'));
  } catch (error) {
    await databases.stop();
    throw error;
  }
  const rows = async <T>(functionName: string, args: Record<string, unknown> = {}): Promise<T[]> => {
    const { name, text } = statementFor(functionName, Object.keys(args));
    return (await client.query({ name, text, values: Object.values(args) })).rows;
  };
  return {
    tools,
    databases,
    indexedUrl: databases.db1.url.replace('//postgres:', '//plain_indexed:'),
    call: async <T>(functionName: string, args?: Record<string, unknown>): Promise<T> => {
      const [row] = await rows<Record<string, T>>(functionName, args);
      return Object.values(row ?? {})[0] as T;
    },
    rows,
    async fill(design, slots) {
      await rows(`bench.fill_${design}`, { p_slots: slots });
      await client.query(sql(`vacuum_${design}.sql`));
      await client.query(sql('checkpoint.sql'));
    },
    async stop() {
      await client.end();
      await databases.stop();
    },
  };
}
