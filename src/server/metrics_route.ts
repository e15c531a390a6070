// GET /metrics, for Prometheus: what this process counted, and what the databases know. It holds counts and the names of
// operators and pools, no payload and no secret. One page is about 60 KB and takes milliseconds to make, so it is made once a
// second at most, for all who ask.

import { collectDefaultMetrics, Registry } from 'prom-client';
import { AnswerCache } from '#core/answer_cache.ts';
import type { Clock } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import type { Page } from '../metrics.ts';
import type { ScrapeGuard } from './scrape_access.ts';

const HEADERS = {
  'content-type': Registry.PROMETHEUS_CONTENT_TYPE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};
const WHOLE = 'the whole page';

export function metricsRoute(pages: readonly Page[], guard: ScrapeGuard, now: Clock = Date.now): Route {
  const made = new AnswerCache(async () => {
    const texts = await Promise.all(pages.map((page) => page.page()));
    return Buffer.from(texts.join('\n'));
  }, now);
  return {
    method: 'GET',
    path: '/metrics',
    handle: async (request) => {
      await guard(request);
      return { status: 200, headers: HEADERS, body: await made.get(WHOLE) };
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
