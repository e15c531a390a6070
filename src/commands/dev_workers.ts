import type { Metrics, Tracer } from '#core/ports.ts';
import { DEFAULT_BATCH_SIZE, DEFAULT_WORKERS } from '../bridge/crew.ts';
import { readSign } from '../bridge/sign.ts';
import { startCellCrews } from '../fleet/crews.ts';
import { createLog } from '../log.ts';
import { startOrderCrew } from '../orders/crew.ts';
import { BreakerMarks, startBreakerMarks } from '../samples/breakers.ts';
import { startRetention } from '../scheduler/retention.ts';
import { startSealing } from '../scheduler/sealing.ts';
import { stripeValues } from '../stack/env_file.ts';
import type { Stack } from '../stack/stack.ts';
import { DEFAULT_WEBHOOK_BATCH, DEFAULT_WEBHOOK_WORKERS, startWebhookCrew } from '../webhook/crew.ts';
import type { Handlers } from '../webhook/handlers.ts';
import { createSecretSource } from '../webhook/secret_source.ts';

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
  counted: Metrics,
  tracer: Tracer,
): DevWorkers {
  const log = createLog();
  const breakers = new BreakerMarks();
  const metrics = breakers.watching(counted);
  const db1Url = stack.db1.url;
  const db2Url = stack.db2.url;
  const urls = { ...process.env, ...stripeValues(stack) };
  const secretOf = createSecretSource(urls);
  const webhooks = startWebhookCrew({
    db2Url,
    workers: DEFAULT_WEBHOOK_WORKERS,
    batchSize: DEFAULT_WEBHOOK_BATCH,
    handlers,
    compare: { secretOf, urls },
    metrics,
    tracer,
    log,
  });
  const crews = startCellCrews({
    db1Url,
    db2Url,
    workers: DEFAULT_WORKERS,
    batchSize: DEFAULT_BATCH_SIZE,
    sign: readSign(stack.secrets.hookSecret),
    metrics,
    tracer,
    log,
    onOutage: breakers.explain,
    onRecorded: webhooks.wake,
  });
  const orders = startOrderCrew({
    db1Url,
    db2Url,
    secretOf,
    urls,
    metrics,
    log,
    onFunded: crews.wake,
  });
  const sealing = startSealing([db1Url, db2Url], log);
  const retention = startRetention([db1Url, db2Url], log);
  const marks = startBreakerMarks(breakers, [db1Url, db2Url], log);
  return {
    wakeBridge: crews.wake,
    wakeWebhooks: webhooks.wake,
    async stop() {
      const parts = [crews, webhooks, orders, sealing, retention, marks];
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
}
