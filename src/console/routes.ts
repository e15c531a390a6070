// The operator's routes that a console needs beside the dead letters.

import type { CallFunction } from '#core/call_function.ts';
import { auditRoutes } from '#core/console/audit.ts';
import { callAdminRoutes } from '#core/console/calls.ts';
import { claimAdminRoutes } from '#core/console/claims.ts';
import { type HealthCheckPorts, healthCheckRoutes } from '#core/console/health.ts';
import { issueRoutes } from '#core/console/issues.ts';
import { orderAdminRoutes } from '#core/console/orders.ts';
import { paymentAdminRoutes } from '#core/console/payments.ts';
import { poolDetailsRoutes } from '#core/console/pool_details.ts';
import { poolAdminRoutes } from '#core/console/pools.ts';
import { createRefundStore, refundAdminRoutes } from '#core/console/refunds.ts';
import { samplesRoutes } from '#core/console/samples_route.ts';
import { ticketAdminRoutes } from '#core/console/tickets.ts';
import { voidRoutes } from '#core/console/void_claims.ts';
import type { Clock, Log } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import { exportRoutes } from '#core/search/exports.ts';
import { searchRoutes } from '#core/search/search.ts';
import { userSummaryRoutes } from '#core/users/summary.ts';
import type { LiveView } from './live.ts';

export interface ConsolePorts {
  readonly db1: CallFunction;
  /** As db1, and throws where the answer lacks a cell. */
  readonly wholeDb1: CallFunction;
  readonly intakes: HealthCheckPorts['intakes'];
  readonly db2: CallFunction;
  /** Call functions of schema calls, and of schema webhook, of DB2. */
  readonly calls: CallFunction;
  readonly webhook: CallFunction;
  readonly now: Clock;
  /** The clock that samples are taken by; `now` where left out. */
  readonly sampleClock?: Clock;
  readonly live: LiveView;
  /** Where Redis is configured: rejects while it does not answer. */
  readonly pingRedis?: () => Promise<unknown>;
  /** This process' share of files that are written at once; all of them where left out. */
  readonly maxExports?: number;
  readonly log: Log;
}

export function consoleRoutes(ports: ConsolePorts): Route[] {
  const { db1, db2, live } = ports;
  return [
    { method: 'GET', path: '/admin/live', handle: () => live.answer() },
    ...samplesRoutes(ports),
    ...poolAdminRoutes(db1),
    ...voidRoutes(ports),
    ...poolDetailsRoutes(db1),
    ...claimAdminRoutes(ports),
    ...orderAdminRoutes(ports),
    ...ticketAdminRoutes(ports),
    ...paymentAdminRoutes(ports),
    ...userSummaryRoutes(ports),
    ...searchRoutes(ports),
    ...exportRoutes({ ...ports, cells: ports.intakes.flatMap(({ name }) => name ?? []) }),
    ...issueRoutes(ports),
    ...refundAdminRoutes(createRefundStore(db2)),
    ...callAdminRoutes(ports.calls),
    ...auditRoutes(db1, db2),
    ...healthCheckRoutes(ports),
  ];
}
