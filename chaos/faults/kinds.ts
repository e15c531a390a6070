// Every fault by its name.

import type { FaultName } from '../options.ts';
import { clockSkew } from './clock_skew.ts';
import { killBackend } from './kill_backend.ts';
import { killPostmaster } from './kill_postmaster.ts';
import { killProcess } from './kill_process.ts';
import type { FaultKind } from './kind.ts';
import { flushRedis, killRedis } from './redis.ts';
import { rollingRestart } from './rolling_restart.ts';
import { stallWorker } from './stall_worker.ts';
import { stopImmediate } from './stop_immediate.ts';
import { targetErrors } from './target_errors.ts';
import { wire } from './wire.ts';

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
};
