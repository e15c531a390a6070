// The worker of this process that carries the inbox to DB2.

import type { CallFunction } from '#core/call_function.ts';
import { createCallStore } from '#core/calls/store.ts';
import { Carrier } from '#core/inbox/carrier.ts';
import { createInboxQueue } from '#core/inbox/store.ts';
import type { Outcomes } from '#core/lease_worker.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { createDatabase, LANE_LOCK_TIMEOUT_MS } from '../db/database.ts';
import { wakeWorkers } from '../server/wake.ts';
import { openWebhookStore } from '../webhook/databases.ts';
import { startWorker, type Worker } from '../worker.ts';

export interface InboxCrewOptions {
  db1Url: string;
  db2Url: string;
  metrics: Metrics;
  log: Log;
  /** Told of new events, for workers in this process. */
  onRecorded?: () => void;
  /** How long a message of a worker that died waits; that of the core where left out. */
  leaseSec?: number;
}

/** One for takes and finishes, one for heartbeats. */
const INBOX_CONNECTIONS = 2;
/** One records, one is for deliveries that are stuck. */
const LEDGER_CONNECTIONS = 2;
const APPLICATION = 'sluice-inbox-worker';

/** Runs until stopped. It looks once a second. */
export function startInboxCrew(options: InboxCrewOptions): Worker {
  const { carrier, end } = openCarrier(options);
  const worker = startWorker(carrier);
  return {
    wake: worker.wake,
    async stop() {
      await worker.stop();
      await end();
    },
  };
}

export interface InboxCarried {
  /** Deliveries by what became of them. */
  totals: Readonly<Outcomes>;
  /** True when DB2 was down, so that deliveries wait for it. */
  isPaused: boolean;
}

/** Works until nothing is due any more. Throws when DB1 cannot be read. */
export async function carryInboxOnce(options: InboxCrewOptions, signal: AbortSignal): Promise<InboxCarried> {
  const { carrier, end } = openCarrier(options);
  try {
    const { outcomes, pausedUntilMs } = await carrier.drain(signal);
    return { totals: outcomes, isPaused: pausedUntilMs > 0 };
  } finally {
    await end();
  }
}

function openCarrier(options: InboxCrewOptions) {
  const { db1Url, db2Url, metrics, log, onRecorded, leaseSec } = options;
  const db1 = createDatabase({ url: db1Url, max: INBOX_CONNECTIONS, applicationName: APPLICATION, log });
  const db2 = createDatabase({
    url: db2Url,
    max: LEDGER_CONNECTIONS,
    applicationName: APPLICATION,
    lockTimeoutMs: LANE_LOCK_TIMEOUT_MS,
    log,
  });
  const ofSchema =
    (database: typeof db1, schema: string): CallFunction =>
    (name, args) =>
      database.call(`${schema}.${name}`, args);
  const wake = wakeWorkers(db2, 'webhook.wake_workers', log, onRecorded);
  const carrier = new Carrier(
    {
      queue: createInboxQueue(ofSchema(db1, 'public')),
      events: openWebhookStore(db2),
      calls: createCallStore(ofSchema(db2, 'calls')),
      fromBase64: (text) => Buffer.from(text, 'base64'),
      wake,
      log,
      metrics,
      now: Date.now,
    },
    leaseSec,
  );
  return {
    carrier,
    async end() {
      await wake.stop();
      await Promise.all([db1.end(), db2.end()]);
    },
  };
}
