// graphile-worker with the settings its own performance page names: a local queue, batched completion, its own pool.

import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, makeWorkerUtils, run, type WorkerEvents } from 'graphile-worker';
import { type Drained, Stopwatch } from './stopwatch.ts';
import type { Session } from './world.ts';

const TASK = 'job';
const LOCAL_QUEUE = 500;
/** Its default and one: with a local queue and batched completion few statements run at the same time. */
const QUEUE_CONNECTIONS = 11;
const LOAD_BATCH = 5_000;
const POLL_MS = 1;
const silent = new Logger(() => () => undefined);

export async function installGraphileWorker(connectionString: string): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  await utils.migrate();
  await utils.release();
}

export async function loadJobs(connectionString: string, payloads: readonly unknown[]): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  for (let from = 0; from < payloads.length; from += LOAD_BATCH)
    await utils.addJobs(
      payloads.slice(from, from + LOAD_BATCH).map((payload) => ({ identifier: TASK, payload })),
    );
  await utils.release();
}

export type JobDrain = {
  /** The database with the queue, and a session there. */
  url: string;
  session: Session;
  /** At a time. */
  clients: number;
  jobs: number;
  handle(payload: unknown): Promise<unknown>;
};

/** From the first fetch until the queue has let go of the last job. */
export async function drainJobs({ url, session, clients, jobs, handle }: JobDrain): Promise<Drained> {
  const watch = new Stopwatch();
  let succeed: () => void;
  let fail: (error: unknown) => void;
  const done = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  const events: WorkerEvents = new EventEmitter();
  events.once('worker:getJob:start', () => watch.begin());
  const runner = await run({
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: clients,
        maxPoolSize: QUEUE_CONNECTIONS,
        localQueue: { size: localQueue(clients) },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: silent,
        events,
      },
    },
    taskList: {
      // A job that throws would be tried again later; here it ends the run.
      [TASK]: (payload) =>
        watch
          .time(() => handle(payload).then(() => 1))
          .then(() => {
            if (watch.carried === jobs) succeed();
          }, fail),
    },
    noHandleSignals: true,
  });
  try {
    await done;
    // Its workers do not tell when a batch of completions has been written.
    while (await session.ask<boolean>('select exists (select from graphile_worker._private_jobs)'))
      await sleep(POLL_MS);
    watch.end();
  } finally {
    await runner.stop();
  }
  return watch.read();
}

export function localQueue(clients: number): number {
  return Math.max(LOCAL_QUEUE, clients);
}
