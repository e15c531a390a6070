import { readAllowedHosts } from '#core/bridge/address.ts';
import { DEFAULT_BATCH_SIZE, DEFAULT_WORKERS, startCrew } from '../bridge/crew.ts';
import type { Worker } from '../bridge/worker.ts';
import { createLog } from '../log.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import type { Stack } from '../stack/stack.ts';

/** What `sluice work` does, inside `npm start`. */
export function startDevWorkers(stack: Stack): Worker {
  const log = createLog();
  const db1Url = stack.db1.cluster.url;
  const crew = startCrew({
    db1Url,
    db2Url: stack.db2.cluster.url,
    workers: DEFAULT_WORKERS,
    batchSize: DEFAULT_BATCH_SIZE,
    allowedHosts: readAllowedHosts(process.env.SLUICE_WEBHOOK_ALLOWED_HOSTS),
    log,
  });
  const scheduler = startScheduler({ db1Url, log });
  return {
    wake: crew.wake,
    async stop() {
      await Promise.all([crew.stop(), scheduler.stop()]);
    },
  };
}
