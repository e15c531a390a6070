// The operator's routes that a console needs beside the dead letters.

import type { CallFunction } from '#core/call_function.ts';
import { auditRoutes } from '#core/console/audit.ts';
import { callAdminRoutes } from '#core/console/calls.ts';
import { claimAdminRoutes } from '#core/console/claims.ts';
import { type HealthCheckPorts, healthCheckRoutes } from '#core/console/health.ts';
import { poolDetailsRoutes } from '#core/console/pool_details.ts';
import { poolAdminRoutes } from '#core/console/pools.ts';
import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import { LiveView } from './live.ts';

export interface ConsolePorts {
  readonly db1: CallFunction;
  readonly intakes: HealthCheckPorts['intakes'];
  readonly db2: CallFunction;
  /** Calls functions of schema calls of DB2. */
  readonly calls: CallFunction;
  readonly now: Clock;
  /** Where Redis is configured: rejects while it does not answer. */
  readonly pingRedis?: () => Promise<unknown>;
  readonly log: Log;
}

export function consoleRoutes(ports: ConsolePorts): Route[] {
  const { db1, db2, now, log } = ports;
  const live = new LiveView({
    lookAtIntake: async () => only(await db1<{ live_sample: IntakeLook }>('live_sample', {})).live_sample,
    lookAtLedger: async () =>
      only(await db2<{ ledger_sample: LedgerLook }>('ledger_sample', {})).ledger_sample,
    now,
    log,
  });
  return [
    { method: 'GET', path: '/admin/live', handle: () => live.answer() },
    ...poolAdminRoutes(db1),
    ...poolDetailsRoutes(db1),
    ...claimAdminRoutes(ports),
    ...callAdminRoutes(ports.calls),
    ...auditRoutes(db1, db2),
    ...healthCheckRoutes(ports),
  ];
}

function only<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new Error('a function that answers one row gave none');
  return row;
}
