// Waiting payments take effect: our worker as `sluice work` runs it, and graphile-worker with the very same SQL effect.

import { NO_METRICS } from '#core/ports.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { drainJobs, loadJobs } from '../graphile_worker.ts';
import { log } from '../servers.ts';
import { connect, type Drained, runLoops, Stopwatch } from '../stopwatch.ts';
import type { World } from '../world.ts';

export type Drain = { clients: number; batch: number; events: number };
export type DrainWay = {
  load(world: World, events: number): Promise<void>;
  run(world: World, drain: Drain): Promise<Drained>;
  /** What has to be true when it is done, beside the effects. */
  check(world: World): Promise<void>;
};

const fill = async (world: World, events: number): Promise<void> => {
  await world.db2.rows('bench.fill_events', { p_events: events });
};

export const ours: DrainWay = {
  load: fill,
  async run({ db2Url }, { clients, batch }) {
    const watch = new Stopwatch();
    const { signal } = new AbortController();
    const options = { db2Url, workers: 1, batchSize: batch, handlers: NO_HANDLERS, metrics: NO_METRICS };
    const opened = Array.from({ length: clients }, () => openProcessor({ ...options, log }));
    try {
      await Promise.all(opened.map(({ database }) => database.call('pg_catalog.now', {})));
      const waiting = [...opened];
      await runLoops(clients, watch, () => {
        const processor = waiting.pop()?.processor;
        return async () => {
          const report = await processor?.step(signal);
          const total = report?.total ?? 0;
          if (total !== (report?.outcomes.success ?? 0))
            throw new Error(`not all were processed: ${JSON.stringify(report?.outcomes)}`);
          return total;
        };
      });
    } finally {
      await Promise.all(opened.map(({ end }) => end()));
    }
    return watch.read();
  },
  async check({ db2 }) {
    const unfinished = await db2.ask<number>(
      `select count(*)::int from public.webhook_events where status <> 'success'`,
    );
    if (unfinished > 0) throw new Error(`${unfinished} events are not processed`);
  },
};

export const graphileWorker: DrainWay = {
  async load(world, events) {
    await fill(world, events);
    const rows = await world.db2.rows<{ waiting_events: unknown }>('bench.waiting_events');
    await loadJobs(
      world.db2Url,
      rows.map((row) => row.waiting_events),
    );
  },
  async run({ db2Url, db2 }, { clients, events }) {
    const database = await connect(db2Url, clients);
    try {
      return await drainJobs({
        ...{ url: db2Url, session: db2, clients, jobs: events },
        handle: (payload) => database.call('bench.apply_event', { p_event: payload }),
      });
    } finally {
      await database.end();
    }
  },
  check: async () => undefined,
};
