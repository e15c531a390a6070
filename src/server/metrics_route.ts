// GET /metrics, for Prometheus: what this process counted, and what DB2 knows. Open like /healthz: it holds counts and
// the names of operators, no payload and no secret.

import { Registry } from 'prom-client';
import type { CallFunction } from '#core/bridge/databases.ts';
import type { Route } from '#core/door.ts';
import type { Log } from '#core/ports.ts';
import type { CollectedMetrics } from '../metrics.ts';
import { createBacklog } from './backlog.ts';

const HEADERS = {
  'content-type': Registry.PROMETHEUS_CONTENT_TYPE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** `call` takes names of functions in schema webhook of DB2. */
export function metricsRoute(metrics: CollectedMetrics, call: CallFunction, log: Log): Route {
  const backlog = createBacklog(call, log);
  return {
    method: 'GET',
    path: '/metrics',
    handle: async () => {
      const pages = await Promise.all([metrics.page(), backlog.page()]);
      return { status: 200, headers: HEADERS, body: pages.join('\n') };
    },
  };
}
