// Numbers that a database knows, read when somebody scrapes.

import type { Registry } from 'prom-client';
import { inTime } from '#core/deadline.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';

/** So that a crowd in front of /metrics is no load on the databases. */
const KEEP_MS = 1_000;
/** A scrape has other numbers to bring home; Prometheus gives up after ten seconds. */
const WAIT_MS = 2_000;

export interface KeptOptions<Look> {
  readonly database: 'DB1' | 'DB2';
  look(): Promise<Look>;
  /** Undefined where the database did not answer. */
  show(look: Look | undefined): void;
  readonly log: Log;
  now(): number;
  readonly waitMs?: number | undefined;
}

/** The registry's metrics, after a look at the database: once a second at most, and never two at a time. */
export function keptForASecond<Look>(
  registry: Registry,
  { database, look, show, log, now, waitMs = WAIT_MS }: KeptOptions<Look>,
): Page {
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
