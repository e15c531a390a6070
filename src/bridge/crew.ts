// Several workers side by side, each with a bridge and connections of its own, woken together.

import { Bridge, type StepReport } from '#core/bridge/bridge.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import { type Log, type Metrics, NO_TRACER, type Tracer } from '#core/ports.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { startListener } from '../db/listener.ts';
import { quoteName } from '../db/statement.ts';
import { endOnce, startEnder } from './ender.ts';
import { createHook } from './hook.ts';
import { startWorker, type Worker } from './worker.ts';

export interface CrewOptions {
  db1Url: string;
  db2Url: string;
  workers: number;
  batchSize: number;
  /** How long a worker may hold a message without a sign of life; DEFAULT_LEASE_SEC where left out. */
  leaseSec?: number;
  /** Hosts that hooks may have although their addresses are private. */
  allowedHosts: ReadonlySet<string>;
  log: Log;
  metrics: Metrics;
  /** Nobody where left out. */
  tracer?: Tracer;
}

export type Totals = Record<string, number>;

export const DEFAULT_WORKERS = 2;
/** Few readers with large batches beat many with small ones; above this a batch only holds its messages longer. */
export const DEFAULT_BATCH_SIZE = 500;
/** A batch takes well under a second; a step that waits for hooks extends its lease three times within it. */
export const DEFAULT_LEASE_SEC = 60;
/** One for the steps, one for heartbeats and marks of validation while a step waits. */
const DB1_CONNECTIONS = 2;
const DB2_CONNECTIONS = 1;
/** What public.bridge_wake notifies. */
const WAKE_CHANNEL = 'sluice_intake';

/** Runs until stopped. A queue that gets work wakes it; without a word it looks four times a second. */
export function startCrew(options: CrewOptions, onStep?: (report: StepReport) => void): Worker {
  const members = Array.from({ length: options.workers }, () => {
    const { bridge, end } = openBridge(options);
    return { worker: startWorker(bridge, options.log, onStep), end };
  });
  const wake = () => {
    for (const { worker } of members) worker.wake();
  };
  const ender = startEnder(options);
  const listener = startListener({
    url: options.db1Url,
    channel: WAKE_CHANNEL,
    onNotice: wake,
    log: options.log,
  });
  return {
    wake,
    async stop() {
      await listener.stop();
      await ender.stop();
      await Promise.all(members.map(({ worker }) => worker.stop()));
      await Promise.all(members.map(({ end }) => end()));
    },
  };
}

export interface Drained {
  /** Deliveries by what became of them. */
  totals: Totals;
  /** True when a target was down, so that messages wait for it. */
  isPaused: boolean;
}

/** Ends what is due to end, then works until nothing is ready any more. Throws when DB1 cannot be read. */
export async function drainOnce(options: CrewOptions, signal: AbortSignal): Promise<Drained> {
  const totals: Totals = {};
  let isPaused = false;
  await endOnce(options, signal);
  const work = async (): Promise<void> => {
    const { bridge, end } = openBridge(options);
    try {
      let report: StepReport;
      do {
        report = await bridge.step(signal);
        for (const [outcome, count] of Object.entries(report.outcomes))
          totals[outcome] = (totals[outcome] ?? 0) + count;
        isPaused ||= report.pausedUntilMs > 0;
      } while (report.total > 0 && !signal.aborted);
    } finally {
      await end();
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: options.workers }, work));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return { totals, isPaused };
}

function openBridge(options: CrewOptions): { bridge: Bridge; end(): Promise<void> } {
  const {
    log,
    metrics,
    tracer = NO_TRACER,
    db1Url,
    db2Url,
    batchSize,
    leaseSec = DEFAULT_LEASE_SEC,
  } = options;
  const applicationName = 'sluice-worker';
  const db1 = createDatabase({ url: db1Url, max: DB1_CONNECTIONS, applicationName, log });
  let db2: Database | undefined;
  const bridge = new Bridge(
    {
      intake: createIntake((name, args) => db1.call(`public.${name}`, args)),
      ledger: () => {
        db2 ??= createDatabase({ url: db2Url, max: DB2_CONNECTIONS, applicationName, log });
        const ledger = db2;
        return createLedger((name, args) => ledger.call(`public.${quoteName(name)}`, args));
      },
      hook: createHook(options.allowedHosts),
      log,
      metrics,
      tracer,
      now: Date.now,
      random: Math.random,
    },
    { batchSize, leaseSec },
  );
  return {
    bridge,
    async end() {
      await Promise.all([db1.end(), db2?.end()]);
    },
  };
}
