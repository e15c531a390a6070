// GET /metrics, for Prometheus: what this process counted, and what the databases know. Open like /healthz: it holds
// counts and the names of operators and pools, no payload and no secret.

import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Route } from '#core/router.ts';
import type { Page } from '../metrics.ts';

const HEADERS = {
  'content-type': Registry.PROMETHEUS_CONTENT_TYPE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

export function metricsRoute(pages: readonly Page[]): Route {
  return {
    method: 'GET',
    path: '/metrics',
    handle: async () => {
      const texts = await Promise.all(pages.map((page) => page.page()));
      return { status: 200, headers: HEADERS, body: texts.join('\n') };
    },
  };
}

let processRegistry: Registry | undefined;

/**
 * What prom-client knows of a Node process: processor time, memory, event loop, garbage collection. One for the whole
 * process, however many servers it has: each would watch the same event loop.
 */
export function processPage(): Page {
  if (processRegistry === undefined) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
  }
  const { metrics } = processRegistry;
  return { page: metrics.bind(processRegistry) };
}
