import type { Metrics, Tracer } from '#core/ports.ts';
import { DEFAULT_BATCH_SIZE, DEFAULT_WORKERS, startCrew } from '../bridge/crew.ts';
import { readSign } from '../bridge/sign.ts';
import { createLog } from '../log.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { startSealing } from '../scheduler/sealing.ts';
import type { Stack } from '../stack/stack.ts';
import { DEFAULT_WEBHOOK_BATCH, DEFAULT_WEBHOOK_WORKERS, startWebhookCrew } from '../webhook/crew.ts';
import type { Handlers } from '../webhook/handlers.ts';

export interface DevWorkers {
  /** There are new claims. */
  wakeBridge(): void;
  /** There are new events. */
  wakeWebhooks(): void;
  stop(): Promise<void>;
}

/** With --no-workers: a person runs them by hand. */
export const NO_WORKERS: DevWorkers = {
  wakeBridge: () => undefined,
  wakeWebhooks: () => undefined,
  stop: () => Promise.resolve(),
};

/** What `sluice work` does, inside `npm start`. */
export function startDevWorkers(
  stack: Stack,
  handlers: Handlers,
  metrics: Metrics,
  tracer: Tracer,
): DevWorkers {
  const log = createLog();
  const db1Url = stack.db1.url;
  const db2Url = stack.db2.url;
  const crew = startCrew({
    db1Url,
    db2Url,
    workers: DEFAULT_WORKERS,
    batchSize: DEFAULT_BATCH_SIZE,
    sign: readSign(stack.secrets.hookSecret),
    metrics,
    tracer,
    log,
  });
  const webhooks = startWebhookCrew({
    db2Url,
    workers: DEFAULT_WEBHOOK_WORKERS,
    batchSize: DEFAULT_WEBHOOK_BATCH,
    handlers,
    metrics,
    tracer,
    log,
  });
  const scheduler = startScheduler({ db1Url, log });
  const sealing = startSealing({ db1Url, db2Url }, log);
  return {
    wakeBridge: crew.wake,
    wakeWebhooks: webhooks.wake,
    async stop() {
      await Promise.all([crew.stop(), webhooks.stop(), scheduler.stop(), sealing.stop()]);
    },
  };
}
