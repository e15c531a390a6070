// What this process counts and times, as Prometheus reads it. docs/metrics.md describes every name.

import { Counter, Histogram, Registry } from 'prom-client';
import type { Metrics } from '#core/ports.ts';

export interface CollectedMetrics extends Metrics {
  /** All that was counted so far, in Prometheus' text format. */
  page(): Promise<string>;
}

const HELP: Readonly<Record<string, string>> = {
  webhook_processing_total: 'Tries to let an event take effect, by what became of them.',
  webhook_dead_letter_total: 'Events that went to the dead letters.',
  webhook_processing_seconds: 'How long a try took; in a batch, until the batch was committed.',
  call_events_total: 'Call events, by what became of them.',
};
/** From an indexed insert to the longest call a handler may make. */
const BUCKETS_SEC = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** One for each process: the server and the workers of `npm start` share theirs. */
export function createMetrics(): CollectedMetrics {
  const registry = new Registry();
  const counters = new Map<string, Counter>();
  const histograms = new Map<string, Histogram>();
  const described = (name: string, labels: object) => ({
    name,
    help: HELP[name] ?? name,
    labelNames: Object.keys(labels),
    registers: [registry],
  });
  return {
    count(name, labels) {
      let counter = counters.get(name);
      if (counter === undefined) {
        counter = new Counter(described(name, labels));
        counters.set(name, counter);
      }
      counter.inc(labels);
    },
    observe(name, labels, seconds) {
      let histogram = histograms.get(name);
      if (histogram === undefined) {
        histogram = new Histogram({ ...described(name, labels), buckets: BUCKETS_SEC });
        histograms.set(name, histogram);
      }
      histogram.observe(labels, seconds);
    },
    page: () => registry.metrics(),
  };
}
