// Numbers that a database knows, read when Prometheus scrapes: a single process does not know them.

import { Counter, Gauge, Registry } from 'prom-client';
import { inTime } from '#core/deadline.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';

/** Many scrapes at once cost the database one read a second. */
const KEEP_MS = 1_000;
/** A scrape has other numbers to bring home; Prometheus gives up after ten seconds. */
const WAIT_MS = 2_000;

/** One metric: where it has labels, a series for each set of them that was read. */
export interface Level<Look> {
  readonly name: string;
  readonly help: string;
  readonly kind?: 'gauge' | 'counter';
  readonly labels?: readonly string[];
  read(look: Look): readonly Series[];
}

type Labels = Readonly<Record<string, string>>;
type Series = readonly [value: number, labels?: Labels];

export interface DatabasePageOptions<Look> {
  /** What the log and the help of `upName` call it. */
  readonly database: 'DB1' | 'DB2' | 'a database';
  /** The gauge that says whether the database answered; another page has it where left out. */
  readonly upName?: string;
  /** One for each database; `labels` tell it from the others where there are several, on all its series. */
  readonly looks: readonly { readonly labels?: Labels; look(): Promise<Look | undefined> }[];
  readonly levels: readonly Level<Look>[];
}

/** Tests move the clock and shorten the wait. */
export interface Timing {
  now?(): number;
  readonly waitMs?: number;
}

/** Reads once a second at most, and never twice at a time. Without the database the page says so and the rest is missing. */
export function databasePage<Look>(
  { database, upName, looks, levels }: DatabasePageOptions<Look>,
  log: Log,
  { now = Date.now, waitMs = WAIT_MS }: Timing = {},
): Page {
  const registry = new Registry();
  const common = [...new Set(looks.flatMap(({ labels = {} }) => Object.keys(labels)))];
  const metrics = createMetrics(registry, database, upName, levels, common);
  const watched = looks.map(({ labels = {}, look }) => {
    /** Undefined where none is under way. */
    let reading: Promise<void> | undefined;
    let readAt = Number.NEGATIVE_INFINITY;
    let latest: Look | undefined;
    return async (): Promise<Seen<Look>> => {
      if (reading === undefined && now() - readAt >= KEEP_MS) {
        readAt = now();
        reading = look()
          .then((seen) => {
            latest = seen;
          })
          .finally(() => {
            reading = undefined;
          });
      }
      try {
        await inTime(waitMs, reading, () => new Error(`no answer within ${waitMs} ms`));
      } catch (error) {
        log.warn(`metrics without ${database}`, { ...labels, cause: error });
        latest = undefined;
      }
      return { labels, look: latest };
    };
  });
  return {
    async page() {
      metrics(await Promise.all(watched.map((look) => look())));
      return registry.metrics();
    },
  };
}

interface Seen<Look> {
  readonly labels: Labels;
  /** Undefined where the database did not answer. */
  readonly look: Look | undefined;
}

/** What to call with the looks at each database. */
function createMetrics<Look>(
  registry: Registry,
  database: string,
  upName: string | undefined,
  levels: readonly Level<Look>[],
  common: readonly string[],
): (seen: readonly Seen<Look>[]) => void {
  const registers = [registry];
  const upHelp = `Whether ${database} answered; where it is 0 the other numbers about it are missing.`;
  const isUp = upName && new Gauge({ name: upName, help: upHelp, labelNames: [...common], registers });
  const shown = levels.map(({ name, help, kind = 'gauge', labels = [], read }) => {
    const labelNames = [...common, ...labels];
    const settings = { name, help, labelNames, registers };
    return { metric: kind === 'gauge' ? new Gauge(settings) : new Counter(settings), labelNames, read };
  });
  return (seen) => {
    for (const { labels, look } of seen) if (isUp) isUp.set(labels, look === undefined ? 0 : 1);
    for (const { metric, labelNames, read } of shown) {
      // What is not known is left out: a reset metric without labels would say 0.
      if (labelNames.length === 0) metric.remove();
      else metric.reset();
      for (const { labels, look } of seen)
        for (const [value, series = {}] of look === undefined ? [] : read(look))
          metric.inc({ ...labels, ...series }, value);
    }
  };
}
