// Every fault by its name.

import type { FaultName } from '../options.ts';
import { killBackend, killPostmaster, stopImmediate } from './databases.ts';
import { failingHook } from './failing_hook.ts';
import { flood } from './flood.ts';
import { killedWorkers } from './killed_workers.ts';
import type { FaultKind } from './kind.ts';
import { powerCut } from './power.ts';
import { clockSkew, killMember, killProcess, reload, rollingRestart, stallWorker } from './processes.ts';
import { slowHook } from './slow_hook.ts';
import { stripeClock, stripeCut, stripeDown, stripeSlow, webhookDropped } from './stripe.ts';
import { stuckTransaction } from './stuck_transaction.ts';
import { flushRedis, killRedis, targetErrors, wire } from './surroundings.ts';

export const FAULT_KINDS: Record<FaultName, FaultKind> = {
  'kill-db1-postmaster': killPostmaster('db1'),
  'kill-db2-postmaster': killPostmaster('db2'),
  'kill-db1-backend': killBackend('db1'),
  'kill-db2-backend': killBackend('db2'),
  'stop-db1-immediate': stopImmediate('db1'),
  'stop-db2-immediate': stopImmediate('db2'),
  'kill-worker': killProcess('commit'),
  'kill-server': killProcess('claim'),
  'stall-worker': stallWorker,
  delay: wire('delay'),
  cut: wire('cut'),
  'half-open': wire('half-open'),
  'cut-after-request': wire('cut-after-request'),
  'flush-redis': flushRedis,
  'kill-redis': killRedis,
  'target-errors': targetErrors,
  'clock-skew': clockSkew,
  'rolling-restart': rollingRestart,
  'kill-process': killMember,
  reload,
  'stripe-down': stripeDown,
  'stripe-slow': stripeSlow,
  'stripe-cut-after-request': stripeCut,
  'webhook-dropped': webhookDropped,
  'stripe-clock': stripeClock,
  'neighbour-slow-hook': slowHook,
  'neighbour-failing-hook': failingHook,
  'neighbour-stuck-transaction': stuckTransaction,
  'neighbour-killed-workers': killedWorkers,
  'neighbour-flood': flood,
  'power-cut': powerCut,
};
