// Waiting payments take effect: our worker as `sluice work` runs it, and graphile-worker with the very same SQL effect.

import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, makeWorkerUtils, run, type WorkerEvents } from 'graphile-worker';
import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { connect, type Drained, runLoops, Stopwatch } from '../bridge/way.ts';
import type { World } from './world.ts';

export type Drain = { clients: number; batch: number; events: number };
export type DrainWay = {
  load(world: World, events: number): Promise<void>;
  run(world: World, drain: Drain): Promise<Drained>;
  /** What has to be true when it is done, beside the effects. */
  check(world: World): Promise<void>;
};

const TASK = 'apply';
/** As its performance page advises: a local queue, batched completion. */
const LOCAL_QUEUE = 500;
const QUEUE_CONNECTIONS = 11;
const LOAD_BATCH = 5_000;
const POLL_MS = 1;
const silent = new Logger(() => () => undefined);

const fill = async (world: World, events: number): Promise<void> => {
  await world.rows('bench.fill_events', { p_events: events });
};

export const ours: DrainWay = {
  load: fill,
  async run({ db2Url }, { clients, batch }) {
    const watch = new Stopwatch();
    const { signal } = new AbortController();
    const options = { db2Url, workers: 1, batchSize: batch, handlers: NO_HANDLERS, metrics: NO_METRICS };
    const opened = Array.from({ length: clients }, () =>
      openProcessor({ ...options, log: createLog('warn') }),
    );
    try {
      await Promise.all(opened.map(({ database }) => database.call('pg_catalog.now', {})));
      const waiting = [...opened];
      await runLoops(clients, watch, () => {
        const processor = waiting.pop()?.processor;
        return async () => {
          const { total, outcomes } = (await processor?.step(signal)) ?? { total: 0, outcomes: {} };
          if (total !== (outcomes.success ?? 0))
            throw new Error(`not all were processed: ${JSON.stringify(outcomes)}`);
          return total;
        };
      });
    } finally {
      await Promise.all(opened.map(({ end }) => end()));
    }
    return watch.read();
  },
  async check(world) {
    const unfinished = Number(await world.value('bench.unfinished'));
    if (unfinished > 0) throw new Error(`${unfinished} events are not processed`);
  },
};

export const graphileWorker: DrainWay = {
  async load(world, events) {
    await fill(world, events);
    const utils = await makeWorkerUtils({ connectionString: world.db2Url, logger: silent });
    const rows = await world.rows<{ waiting_events: unknown }>('bench.waiting_events');
    for (let from = 0; from < rows.length; from += LOAD_BATCH)
      await utils.addJobs(
        rows.slice(from, from + LOAD_BATCH).map((row) => ({ identifier: TASK, payload: row.waiting_events })),
      );
    await utils.release();
  },
  run: drainJobs,
  check: async () => undefined,
};

async function drainJobs(world: World, { clients, events }: Drain): Promise<Drained> {
  const watch = new Stopwatch();
  const database = await connect(world.db2Url, clients);
  let succeed: () => void;
  let fail: (error: unknown) => void;
  const done = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  const apply = async (payload: unknown): Promise<number> => {
    await database.call('bench.apply_event', { p_event: payload });
    return 1;
  };
  const emitter: WorkerEvents = new EventEmitter();
  // From the first fetch, as with ours.
  emitter.once('worker:getJob:start', () => watch.begin());
  const runner = await run({
    preset: {
      worker: {
        connectionString: world.db2Url,
        concurrentJobs: clients,
        maxPoolSize: QUEUE_CONNECTIONS,
        localQueue: { size: Math.max(LOCAL_QUEUE, clients) },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger: silent,
        events: emitter,
      },
    },
    taskList: {
      // A job that throws would be tried again later; here it ends the run.
      [TASK]: (payload) =>
        watch
          .time(() => apply(payload))
          .then(() => {
            if (watch.carried === events) succeed();
          }, fail),
    },
    noHandleSignals: true,
  });
  try {
    await done;
    while (await world.value<boolean>('bench.has_jobs')) await sleep(POLL_MS);
    watch.end();
  } finally {
    await runner.stop();
    await database.end();
  }
  return watch.read();
}
