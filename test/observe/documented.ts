// The metrics as docs/metrics.md has them, and as a scraped page has them.

import { readPage } from '../contract/docs.ts';

export interface Metric {
  kind: string;
  labels: string[];
}

const ROW = /^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm;
/** prom-client's own, which the page describes as one group. */
const OF_THE_PROCESS = /^(process|nodejs)_/;

export function documentedMetrics(): Map<string, Metric> {
  const found = new Map<string, Metric>();
  for (const [, name = '', kind = '', labels = ''] of readPage('metrics.md').matchAll(ROW))
    found.set(name, { kind, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).sort() });
  return found;
}

/** By name; the labels are those of its samples, and null where it has none. */
export function scrapedMetrics(page: string): Map<string, { kind: string; labels: string[] | null }> {
  const found = new Map<string, { kind: string; labels: string[] | null }>();
  for (const [, name = '', kind = ''] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm))
    if (!OF_THE_PROCESS.test(name)) found.set(name, { kind, labels: null });
  for (const [, series = '', labels = ''] of page.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)) {
    if (OF_THE_PROCESS.test(series)) continue;
    const metric = found.get(series) ?? found.get(series.replace(/_(bucket|sum|count)$/, ''));
    if (metric === undefined) throw new Error(`${series} has no type`);
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label);
    metric.labels = names.filter((label) => label !== 'le').sort();
  }
  return found;
}
