// What this process counts and times, as Prometheus reads it. docs/metrics.md describes every name.

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from '#core/ports.ts';
import { type Described, METRICS } from './metric_names.ts';

/** Something that shows in Prometheus' text format. */
export interface Page {
  page(): Promise<string>;
}

/** Numbers of a process, as they can be added to those of another. */
export type Snapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** A page whose numbers belong to this process alone. */
export interface OwnPage extends Page {
  snapshot(): Promise<Snapshot>;
}

export type CollectedMetrics = Metrics & OwnPage;

/** One for each process: the server and the workers of `npm start` share theirs. */
export function createMetrics(): CollectedMetrics {
  const registry = new Registry();
  const counted = new Map<string, Counter | Gauge>();
  const observed = new Map<string, Histogram>();
  for (const [name, { kind, help, labels, buckets, together = 'sum' }] of Object.entries(METRICS)) {
    const settings = {
      name,
      help,
      labelNames: Object.keys(labels),
      aggregator: together as 'sum' | 'max',
      registers: [registry],
    };
    if (kind === 'counter') counted.set(name, new Counter(settings));
    else if (kind === 'gauge') counted.set(name, new Gauge(settings));
    else observed.set(name, new Histogram({ ...settings, buckets: [...(buckets ?? [])] }));
    for (const known of combinations(labels)) counted.get(name)?.inc(known, 0);
  }
  counted.get('sluice_processes')?.inc(1);
  return {
    count(name, labels, by = 1) {
      found(counted, name).inc(labels, by);
    },
    observe(name, labels, value) {
      found(observed, name).observe(labels, value);
    },
    page: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
  };
}

function found<Metric>(metrics: ReadonlyMap<string, Metric>, name: string): Metric {
  const metric = metrics.get(name);
  if (metric === undefined) throw new Error(`docs/metrics.md has no ${name}`);
  return metric;
}

/** All series whose labels are known beforehand: none where one of them is not. */
function combinations(labels: Described['labels']): Record<string, string>[] {
  let some: Record<string, string>[] = [{}];
  for (const [name, values] of Object.entries(labels))
    some = some.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
  return some;
}
