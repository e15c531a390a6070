// GET /metrics, for Prometheus: what this command counted, and what the databases know. It holds counts and the names of
// operators and pools, no payload and no secret. One page is about 60 KB and takes milliseconds to make, so a page is made once
// a second at most. All readers that ask within the second wait for the same one: a connection cannot ask more often than that.

import { setTimeout as pause } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Clock } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import type { OwnPage, Page } from '../metrics.ts';
import type { Member } from '../processes/member.ts';
import type { ScrapeGuard } from './scrape_access.ts';

const HEADERS = {
  'content-type': Registry.PROMETHEUS_CONTENT_TYPE,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};
const EVERY_MS = 1_000;

export function metricsRoute(
  pages: readonly Page[],
  guard: ScrapeGuard,
  // Not the clock of the machine: set back, it would keep readers waiting.
  now: Clock = () => performance.now(),
  rest: (ms: number) => Promise<unknown> = pause,
): Route {
  let begunMs = Number.NEGATIVE_INFINITY;
  let last: Promise<Buffer> | undefined;
  let next: Promise<Buffer> | undefined;
  const make = async (): Promise<Buffer> => {
    const earlyMs = begunMs + EVERY_MS - now();
    await Promise.allSettled([last, earlyMs > 0 ? rest(earlyMs) : undefined]);
    begunMs = now();
    // A reader that asks from now on waits for the page after this one.
    [last, next] = [next, undefined];
    const texts = await Promise.all(pages.map((page) => page.page()));
    return Buffer.from(texts.join('\n'));
  };
  return {
    method: 'GET',
    path: '/metrics',
    handle: async (request) => {
      await guard(request);
      next ??= make();
      return { status: 200, headers: HEADERS, body: await next };
    },
  };
}

let processRegistry: Registry | undefined;

/**
 * What prom-client knows of a Node process: processor time, memory, event loop, garbage collection. One for the whole
 * process, however many servers it has: each would watch the same event loop.
 */
function processPage(): OwnPage {
  if (processRegistry === undefined) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
  }
  const registry = processRegistry;
  return { page: () => registry.metrics(), snapshot: () => registry.getMetricsAsJSON() };
}

/** What this process counted, and what it is; with other processes of its command, what all of them did, as one page. */
export function ownPages(pages: readonly OwnPage[], member: Member | undefined): Page[] {
  const own = [...pages, processPage()];
  if (member === undefined) return own;
  member.counts(own);
  return [member.page()];
}
