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

type Series = readonly [value: number, labels?: Readonly<Record<string, string>>];

export interface DatabasePageOptions<Look> {
  readonly database: 'DB1' | 'DB2';
  /** The gauge that says whether the database answered. */
  readonly upName: string;
  look(): Promise<Look | undefined>;
  readonly levels: readonly Level<Look>[];
}

/** Tests move the clock and shorten the wait. */
export interface Timing {
  now?(): number;
  readonly waitMs?: number;
}

/** Reads once a second at most, and never twice at a time. Without the database the page says so and the rest is missing. */
export function databasePage<Look>(
  { database, upName, look, levels }: DatabasePageOptions<Look>,
  log: Log,
  { now = Date.now, waitMs = WAIT_MS }: Timing = {},
): Page {
  const registry = new Registry();
  const show = createMetrics(registry, database, upName, levels);
  /** Undefined where none is under way. */
  let reading: Promise<void> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const refresh = async (): Promise<void> => {
    if (reading === undefined && now() - readAt >= KEEP_MS) {
      readAt = now();
      reading = look()
        .then(show)
        .finally(() => {
          reading = undefined;
        });
    }
    try {
      await inTime(waitMs, reading, () => new Error(`no answer within ${waitMs} ms`));
    } catch (error) {
      log.warn(`metrics without ${database}`, { cause: error });
      show(undefined);
    }
  };
  return {
    async page() {
      await refresh();
      return registry.metrics();
    },
  };
}

/** What to call with each look; with undefined where the database did not answer. */
function createMetrics<Look>(
  registry: Registry,
  database: string,
  upName: string,
  levels: readonly Level<Look>[],
): (look: Look | undefined) => void {
  const registers = [registry];
  const upHelp = `Whether ${database} answered; where it is 0 the other numbers about it are missing.`;
  const isUp = new Gauge({ name: upName, help: upHelp, registers });
  const shown = levels.map(({ name, help, kind = 'gauge', labels = [], read }) => {
    const settings = { name, help, labelNames: labels, registers };
    return { metric: kind === 'gauge' ? new Gauge(settings) : new Counter(settings), labels, read };
  });
  return (look) => {
    isUp.set(look === undefined ? 0 : 1);
    for (const { metric, labels, read } of shown) {
      // What is not known is left out: a reset metric without labels would say 0.
      if (labels.length === 0) metric.remove();
      else metric.reset();
      if (look === undefined) continue;
      for (const [value, series = {}] of read(look)) metric.inc(series, value);
    }
  };
}
