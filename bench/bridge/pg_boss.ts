// pg-boss through its fetch and complete: its own polling worker would rest up to half a second between batches.

import PgBoss from 'pg-boss';
import type { Payload } from '#core/bridge/ports.ts';
import { createLedger } from '#core/bridge/store.ts';
import type { Database } from '../../src/db/database.ts';
import { connect, type Drained, runLoops, Stopwatch } from '../stopwatch.ts';
import type { World } from '../world.ts';
import { type Drain, endClaims, takeMessages, type Way } from './way.ts';

const QUEUE = 'commit';
const LOAD_BATCH = 5_000;
/** Connections to the ledger over which the jobs of fetched batches are committed one by one. */
const LEDGER_CONNECTIONS = 48;

type Commit = (payloads: Payload[]) => Promise<void>;

async function start(connectionString: string, max: number): Promise<PgBoss> {
  // Without supervise and schedule nothing but our own calls runs.
  const boss = new PgBoss({ connectionString, max, supervise: false, schedule: false });
  await boss.start();
  return boss;
}

async function stop(boss: PgBoss): Promise<void> {
  await boss.stop({ graceful: false, wait: true });
}

export async function installPgBoss(connectionString: string): Promise<void> {
  const boss = await start(connectionString, 1);
  await boss.createQueue(QUEUE);
  await stop(boss);
}

async function load(world: World): Promise<void> {
  const boss = await start(world.db1Url, 1);
  const jobs = (await takeMessages(world)).map((data) => ({ name: QUEUE, data }));
  for (let from = 0; from < jobs.length; from += LOAD_BATCH)
    await boss.insert(jobs.slice(from, from + LOAD_BATCH));
  await stop(boss);
}

export const pgBoss: Way = {
  schema: 'pgboss',
  endsClaims: false,
  settings: ({ batch }) =>
    `fetch ${batch} and complete them at once; ${LEDGER_CONNECTIONS} connections to the ledger, one insert a job`,
  load,
  async run(world, drain) {
    const ledger = await connect(world.db2Url, LEDGER_CONNECTIONS);
    return drainBatches(world, drain, [ledger], (payloads) => commitOneByOne(ledger, payloads));
  },
};

export const pgBossBatch: Way = {
  schema: 'pgboss',
  endsClaims: false,
  settings: ({ batch }) => `fetch ${batch}, one finalize_batch, complete them at once`,
  load,
  async run(world, drain) {
    const database = await connect(world.db2Url, drain.clients);
    return drainBatches(world, drain, [database], createBatchCommit(database));
  },
};

/** With the same outcome as the bridge: one more statement a batch ends the claims and slots. */
export const pgBossBatchClaims: Way = {
  schema: 'pgboss',
  endsClaims: true,
  settings: ({ batch }) => `fetch ${batch}, one finalize_batch, end claims and slots, complete them at once`,
  load,
  async run(world, drain) {
    const db1 = await connect(world.db1Url, drain.clients);
    const db2 = await connect(world.db2Url, drain.clients);
    const commit = createBatchCommit(db2);
    return drainBatches(world, drain, [db1, db2], async (payloads) => {
      await commit(payloads);
      await endClaims(db1, payloads);
    });
  },
};

function createBatchCommit(database: Database): Commit {
  const ledger = createLedger((functionName, args) => database.call(`public.${functionName}`, args));
  return async (payloads) => {
    await ledger.finalizeBatch(payloads);
  };
}

async function drainBatches(
  world: World,
  { clients, batch }: Drain,
  databases: Database[],
  commit: Commit,
): Promise<Drained> {
  const boss = await start(world.db1Url, clients);
  const watch = new Stopwatch();
  const carryBatch = async (): Promise<number> => {
    const jobs = await boss.fetch<Payload>(QUEUE, { batchSize: batch, priority: false });
    if (jobs.length === 0) return 0;
    await commit(jobs.map(({ data }) => data));
    await boss.complete(
      QUEUE,
      jobs.map(({ id }) => id),
    );
    return jobs.length;
  };
  try {
    await runLoops(clients, watch, () => carryBatch);
  } finally {
    await stop(boss);
    await Promise.all(databases.map((database) => database.end()));
  }
  return watch.read();
}

async function commitOneByOne(ledger: Database, payloads: Payload[]): Promise<void> {
  const waiting = payloads.values();
  const lane = async (): Promise<void> => {
    for (const payload of waiting) await ledger.call('public.finalize_transaction', { p_payload: payload });
  };
  await Promise.all(Array.from({ length: LEDGER_CONNECTIONS }, lane));
}
