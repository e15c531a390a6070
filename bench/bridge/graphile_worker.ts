// graphile-worker with the settings its own performance page names: a local queue, batched completion, its own pool.

import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, makeWorkerUtils, run, type TaskList, type WorkerEvents } from 'graphile-worker';
import type { Payload } from '#core/bridge/ports.ts';
import { createLedger } from '#core/bridge/store.ts';
import type { Database } from '../../src/db/database.ts';
import { connect, type Drain, type Drained, loadInBatches, Stopwatch, type Way } from './way.ts';
import type { World } from './world.ts';

const TASK = 'commit';
const LOCAL_QUEUE = 500;
/** Its default and one: with a local queue and batched completion few statements run at the same time. */
const DB1_CONNECTIONS = 11;
const POLL_MS = 1;

type Handler = (payload: Payload) => Promise<unknown>;

const silent = new Logger(() => () => undefined);

export async function installGraphileWorker(connectionString: string): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  await utils.migrate();
  await utils.release();
}

async function load(world: World): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: world.db1Url, logger: silent });
  await loadInBatches(world, (payloads) =>
    utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload }))),
  );
  await utils.release();
}

export const graphileWorker: Way = {
  schema: 'graphile_worker',
  endsClaims: false,
  settings: ({ clients }) => settings(clients, `${clients} connections to the ledger, one insert a job`),
  load,
  async run(world, drain) {
    const ledger = await connect(world.db2Url, drain.clients);
    return drainJobs(world, drain, ledger, (payload) =>
      ledger.call('public.finalize_transaction', { p_payload: payload }),
    );
  },
};

/** Its handlers see one job each; those that run at the same time are gathered into one call. */
export const graphileWorkerBatch: Way = {
  schema: 'graphile_worker',
  endsClaims: false,
  settings: ({ clients }) => settings(clients, 'handlers gather into one finalize_batch at a time'),
  load,
  async run(world, drain) {
    const ledger = await connect(world.db2Url, 1);
    return drainJobs(world, drain, ledger, gatherInto(ledger));
  },
};

function settings(clients: number, handler: string): string {
  return `concurrentJobs ${clients}, localQueue ${localQueue(clients)}, completeJobBatchDelay 0; ${handler}`;
}

function localQueue(clients: number): number {
  return Math.max(LOCAL_QUEUE, clients);
}

async function drainJobs(
  world: World,
  { clients, messages }: Drain,
  ledger: Database,
  handler: Handler,
): Promise<Drained> {
  const watch = new Stopwatch();
  let succeed: () => void;
  let fail: (error: unknown) => void;
  const done = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  const commit = async (payload: unknown): Promise<number> => {
    await handler(payload as Payload);
    return 1;
  };
  const taskList: TaskList = {
    // A job that throws would be tried again later; here it ends the run.
    [TASK]: (payload) =>
      watch
        .time(() => commit(payload))
        .then(() => {
          if (watch.carried === messages) succeed();
        }, fail),
  };
  const events: WorkerEvents = new EventEmitter();
  // From the first fetch, as with the others.
  events.once('worker:getJob:start', () => watch.begin());
  const runner = await run({
    preset: {
      worker: {
        connectionString: world.db1Url,
        concurrentJobs: clients,
        maxPoolSize: DB1_CONNECTIONS,
        localQueue: { size: localQueue(clients) },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: silent,
        events,
      },
    },
    taskList,
    noHandleSignals: true,
  });
  try {
    await done;
    while (await world.db1.value<boolean>('bench.has_graphile_jobs')) await sleep(POLL_MS);
    watch.end();
  } finally {
    await runner.stop();
    await ledger.end();
  }
  return watch.read();
}

function gatherInto(database: Database): Handler {
  const ledger = createLedger((functionName, args) => database.call(`public.${functionName}`, args));
  let waiting: Payload[] = [];
  let next: Promise<unknown> | undefined;
  let current: Promise<unknown> = Promise.resolve();
  return (payload) => {
    waiting.push(payload);
    // The first to arrive starts the next call as soon as the one under way has returned.
    next ??= current.then(() => {
      const batch = waiting;
      waiting = [];
      next = undefined;
      current = ledger.finalizeBatch(batch);
      return current;
    });
    return next;
  };
}
