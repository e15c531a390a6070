// What prom-client knows of a Node process: processor time, memory, event loop, garbage collection.

import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Page } from '../metrics.ts';

let registry: Registry | undefined;

/** One for the whole process, however many servers it has: each would watch the same event loop. */
export function processPage(): Page {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry });
  }
  const { metrics } = registry;
  return { page: metrics.bind(registry) };
}
