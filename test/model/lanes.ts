// Databases for many short histories: each lane is a pair of databases of its own, in which one history runs at a time.
// So functions that work on everything (take, reap, expire, reconcile) run unchanged and meet only this history's rows.

import pg from 'pg';
import { readSettings } from '../../bench/durability.ts';
import { TYPES } from '../../src/db/values.ts';
import { MACHINES } from '../../tools/machines.ts';
import { RECORDER, recording } from '../machines/recorder.ts';
import { startDatabases } from '../support/databases.ts';
import { SHOP } from './events/statements.ts';
import { PREPARE_INTAKE, PREPARE_LEDGER } from './orders/statements.ts';

/** One database of a lane. Statements are prepared once: a history sends the same few hundreds of times. */
export type Side = {
  rows<Row extends pg.QueryResultRow>(sql: string, args?: unknown[]): Promise<Row[]>;
  /** Runs several statements that take no arguments. */
  run(sql: string): Promise<void>;
};

/** `breaks` names what a control switches off in the world around the databases. */
export type Lane = { db1: Side; db2: Side; breaks: Set<string> };

/** `open` makes a lane; `prepare` is how a control switches a guard off in it. */
export type Lanes = {
  open(prepare?: (lane: Lane) => Promise<void>): Promise<Lane>;
  settings(): Promise<Record<string, string>>;
  stop(): Promise<void>;
};

// Crashes of the machine are not the subject, and nothing here has to outlive the run.
const SETTINGS = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', jit: 'off' };

export async function startLanes(): Promise<Lanes> {
  const databases = await startDatabases({ settings: SETTINGS });
  const clients: pg.Client[] = [];
  const connect = async (url: string): Promise<pg.Client> => {
    // As the product reads them: workers of the product run on these.
    const client = new pg.Client({ connectionString: url, types: TYPES });
    // A connection that breaks while idle reports here; the statement that follows then fails with the reason.
    client.on('error', () => undefined);
    clients.push(client);
    await client.connect();
    return client;
  };
  const stop = async (): Promise<void> => {
    // Settled, not just all: whatever a connection says at its end, the servers have to be stopped.
    await Promise.allSettled(clients.map((client) => client.end()));
    await databases.stop();
  };
  let count = 0;
  try {
    // Postgres copies a database only while no session is connected to it, so these two connect to `template1`.
    const one = await connect(otherDatabase(databases.db1.url, 'template1'));
    const other = await connect(otherDatabase(databases.db2.url, 'template1'));
    let making: Promise<unknown> = Promise.resolve();
    const open: Lanes['open'] = async (prepare) => {
      const name = `lane_${++count}`;
      const statement = `create database ${name} template postgres`;
      // One after the other: a connection has one statement at a time.
      making = making.then(() => Promise.all([one, other].map((maker) => maker.query(statement))));
      await making;
      const lane = {
        db1: asSide(await connect(otherDatabase(databases.db1.url, name))),
        db2: asSide(await connect(otherDatabase(databases.db2.url, name))),
        breaks: new Set<string>(),
      };
      await lane.db2.run(SHOP + PREPARE_LEDGER);
      await lane.db1.run(PREPARE_INTAKE);
      for (const machine of MACHINES) await lane[machine.side].run(RECORDER + recording(machine));
      await prepare?.(lane);
      return lane;
    };
    return { open, settings: () => readSettings(one), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function otherDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

function asSide(client: pg.Client): Side {
  const names = new Map<string, string>();
  return {
    async rows<Row extends pg.QueryResultRow>(sql: string, args: unknown[] = []) {
      let name = names.get(sql);
      if (name === undefined) {
        name = `model_${names.size + 1}`;
        names.set(sql, name);
      }
      return (await client.query<Row>({ name, text: sql, values: args })).rows;
    },
    async run(sql) {
      await client.query(sql);
    },
  };
}
