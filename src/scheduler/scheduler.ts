// Stands in for pg_cron and pg_net on DB1, where they are not.

import type { Clock, Log } from '#core/ports.ts';
import { createDatabase, REBUILD_TIMEOUT_MS } from '../db/database.ts';
import { type Loop, startLoop } from '../loop.ts';
import { Cron } from './cron.ts';
import { sendQueued } from './outbox.ts';
import { expireHolds, rebuildLostPools } from './upkeep.ts';

export interface SchedulerOptions {
  db1Url: string;
  log: Log;
  now?: Clock;
}

export interface Scheduler {
  stop(): Promise<void>;
}

/** pg_cron's smallest step is a second. */
const TICK_MS = 1_000;
const PURGE_MS = 10 * 60 * 1_000;
/** Two jobs at a time, one to look what is due, one for the requests, one for the holds. */
const CONNECTIONS = 5;

interface Duties {
  readonly run_jobs: boolean;
  readonly send_requests: boolean;
  /** Both are to be done, and the role that we connect as may not. */
  readonly needs_owner: boolean;
}

export function startScheduler({ db1Url, log, now = Date.now }: SchedulerOptions): Scheduler {
  const db = createDatabase({ url: db1Url, max: CONNECTIONS, applicationName: 'sluice-scheduler', log });
  const rebuilder = createDatabase({
    url: db1Url,
    max: 1,
    applicationName: 'sluice-rebuilder',
    callTimeoutMs: REBUILD_TIMEOUT_MS,
    log,
  });
  const cron = new Cron(db, log, now);
  let duties: Duties | undefined;
  // Asked for until the database answers: it may be down when we start.
  const duty = async (): Promise<Duties> => {
    if (duties === undefined) {
      const [row] = await db.call<Duties>('public.scheduler_duties', {});
      duties = row ?? { run_jobs: false, send_requests: false, needs_owner: false };
      log.info('scheduler started', { ...duties });
      if (duties.needs_owner)
        log.warn(
          'cron jobs and queued requests of this database wait for a worker that connects as its owner',
        );
    }
    return duties;
  };
  const loops: Loop[] = [
    startLoop('the scheduler', TICK_MS, log, async () => {
      if ((await duty()).run_jobs) await cron.tick();
    }),
    startLoop('ending holds', TICK_MS, log, async (signal) => {
      if (duties?.run_jobs) await expireHolds(db, signal);
    }),
    startLoop('rebuilding lost pools', TICK_MS, log, async (signal) => {
      if (duties?.run_jobs) await rebuildLostPools(rebuilder, signal);
    }),
    startLoop('sending queued requests', TICK_MS, log, async (signal) => {
      if (duties?.send_requests) await sendQueued(db, log, signal);
    }),
    startLoop('purging old responses', PURGE_MS, log, async () => {
      if (duties?.send_requests) await db.call('net.purge_responses', {});
    }),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await cron.settled();
      await Promise.all([db.end(), rebuilder.end()]);
    },
  };
}
