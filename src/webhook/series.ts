// What is counted for each endpoint begins with 0, as what is known beforehand does (src/metric_names.ts): Prometheus sees no
// increase in a series that begins with its first event.

import type { CallFunction } from '#core/call_function.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { beginOutcomes } from '#core/webhook/outcome.ts';
import { type Loop, startLoop } from '../loop.ts';

export const COMPARISON_RESULTS = ['done', 'failed'] as const;

/** An endpoint that is added has its series after so long. */
const LOOK_MS = 60 * 1_000;

export interface EndpointSeries extends Loop {
  /** Whether scrapes could see the series of the endpoint for so long. */
  areShown(webhookId: string, forMs: number): boolean;
}

/** `webhook` takes names of functions in schema webhook of DB2. */
export function startEndpointSeries(webhook: CallFunction, metrics: Metrics, log: Log): EndpointSeries {
  const store = createOperatorStore(webhook);
  const begunMs = new Map<string, number>();
  const loop = startLoop('looking for new endpoints', LOOK_MS, log, async () => {
    for (const endpoint of await store.listEndpoints()) {
      if (begunMs.has(endpoint.webhook_id)) continue;
      const { webhook_id, provider } = endpoint;
      beginOutcomes(endpoint, metrics);
      for (const result of COMPARISON_RESULTS)
        metrics.count('webhook_comparisons_total', { webhook_id, provider, result }, 0);
      metrics.count('webhook_missing_total', { webhook_id, provider }, 0);
      begunMs.set(webhook_id, Date.now());
    }
  });
  return {
    stop: loop.stop,
    areShown: (webhookId, forMs) => Date.now() - (begunMs.get(webhookId) ?? Date.now()) >= forMs,
  };
}
