// The bridge of this process with its connections, woken when the queue gets work.

import { Bridge } from '#core/bridge/bridge.ts';
import type { SignHook } from '#core/bridge/hook_request.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import { FUNCTION_CALLS_AT_ONCE } from '#core/bridge/targets.ts';
import type { CallFunction } from '#core/call_function.ts';
import type { Outcomes } from '#core/lease_worker.ts';
import { type Log, type Metrics, NO_TRACER, type Tracer } from '#core/ports.ts';
import { createDatabase, type Database, LANE_LOCK_TIMEOUT_MS } from '../db/database.ts';
import { startListener } from '../db/listener.ts';
import { quoteName } from '../db/statement.ts';
import { doesChores, type Part, restOf, shareOf, WHOLE } from '../processes/part.ts';
import { HandlerDatabases } from '../webhook/databases.ts';
import { startWorker, type Worker } from '../worker.ts';
import { endOnce, startEnder } from './ender.ts';
import { createHook } from './hook.ts';

export interface CrewOptions {
  db1Url: string;
  db2Url: string;
  /** Batches on their way to the ledger at once. */
  workers: number;
  batchSize: number;
  /** How long a worker may hold a message without a sign of life; DEFAULT_LEASE_SEC where left out. */
  leaseSec?: number;
  /** Hooks are posted unsigned where it is left out. */
  sign?: SignHook | undefined;
  log: Log;
  metrics: Metrics;
  /** None where left out. */
  tracer?: Tracer;
  /** Hears why a target is left alone. */
  onOutage?: (target: string, why: string) => void;
  /** Which of several processes of the command this is; the only one where left out. */
  part?: Part;
}

export const DEFAULT_WORKERS = 2;
/**
 * Few readers with large batches beat many with small ones: 500 cost 9 % more CPU for each message (bench/README.md, cost). Above
 * this a batch only holds its messages longer.
 */
export const DEFAULT_BATCH_SIZE = 1_000;
/** A batch takes well under a second; a step that waits for hooks extends its lease three times within it. */
export const DEFAULT_LEASE_SEC = 60;
/** For takes, rules and heartbeats: none of them waits for a lock of a claim. */
const TAKING_CONNECTIONS = 3;
/** Besides one for each batch: two for what another session keeps up, one for the finishes and marks of hooks. */
const FINISHING_CONNECTIONS = 3;
/** What public.bridge_wake notifies. */
const WAKE_CHANNEL = 'sluice_intake';

/** Runs until stopped. A queue that gets work wakes it; without a word it looks by itself. */
export function startCrew(options: CrewOptions, onGroup?: (outcomes: Outcomes) => void): Worker {
  const { bridge, end } = openBridge(options);
  const worker = startWorker(bridge, onGroup);
  const ender = doesChores(options.part ?? WHOLE) ? startEnder(options) : undefined;
  const { db1Url: url, log } = options;
  const listener = startListener({ url, channel: WAKE_CHANNEL, onNotice: worker.wake, log });
  return {
    wake: worker.wake,
    async stop() {
      await listener.stop();
      await Promise.all([ender?.stop(), worker.stop()]);
      await end();
    },
  };
}

export interface Drained {
  /** Deliveries by what became of them. */
  totals: Readonly<Outcomes>;
  /** True when a target was down, so that messages wait for it. */
  isPaused: boolean;
}

/** Ends what is due to end, then works until nothing is ready any more. Throws when DB1 cannot be read. */
export async function drainOnce(options: CrewOptions, signal: AbortSignal): Promise<Drained> {
  await endOnce(options, signal);
  const { bridge, end } = openBridge(options);
  try {
    const { outcomes, pausedUntilMs } = await bridge.drain(signal);
    return { totals: outcomes, isPaused: pausedUntilMs > 0 };
  } finally {
    await end();
  }
}

function openBridge(options: CrewOptions): { bridge: Bridge; end(): Promise<void> } {
  const { log, metrics, tracer = NO_TRACER, workers, batchSize, leaseSec = DEFAULT_LEASE_SEC } = options;
  const { part = WHOLE } = options;
  const share = (limit: number): number => shareOf(limit, part);
  const open = (url: string, max: number, more: { lockTimeoutMs?: number } = {}): Database =>
    createDatabase({ url, max, applicationName: 'sluice-worker', log, ...more });
  const callPublic =
    (database: Database): CallFunction =>
    (name, args) =>
      database.call(`public.${quoteName(name)}`, args);
  const db1 = open(options.db1Url, TAKING_CONNECTIONS);
  // A finish that meets a lock is tried again, and meanwhile its connection is another pool's.
  const finishes = open(options.db1Url, workers + FINISHING_CONNECTIONS, {
    lockTimeoutMs: LANE_LOCK_TIMEOUT_MS,
  });
  // Sets share these: one that meets a lock is tried by halves, and later.
  const db2 = open(options.db2Url, workers, { lockTimeoutMs: LANE_LOCK_TIMEOUT_MS });
  // As many as its calls at once: a call that waited for a connection would look like a lost one.
  const functions = new HandlerDatabases<string>(() => open(options.db2Url, share(FUNCTION_CALLS_AT_ONCE)));
  const callIntake: CallFunction = (name, args) =>
    callPublic(name === 'bridge_finish' ? finishes : db1)(name, args);
  const ledger = createLedger(callPublic(db2), (name, args) => callPublic(functions.of(name))(name, args));
  const bridge = new Bridge(
    {
      intake: createIntake(callIntake),
      ledger: () => ledger,
      hook: createHook(options.sign),
      log,
      metrics,
      tracer,
      ...(options.onOutage && { onOutage: options.onOutage }),
      now: Date.now,
      random: Math.random,
    },
    { batchSize, batches: workers, leaseSec, share, ...restOf(part) },
  );
  return {
    bridge,
    async end() {
      await Promise.all([db1.end(), finishes.end(), db2.end(), functions.end()]);
    },
  };
}
