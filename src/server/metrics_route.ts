// GET /metrics, for Prometheus: what this process counted, and what the databases know. Open like /healthz: it holds
// counts and the names of operators and pools, no payload and no secret.

import { Registry } from 'prom-client';
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
