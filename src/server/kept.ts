// Numbers that a database knows, read when somebody scrapes.

import type { Registry } from 'prom-client';
import { inTime } from '#core/deadline.ts';
import type { Page } from '../metrics.ts';

/** So that a crowd in front of /metrics is no load on the databases. */
const KEEP_MS = 1_000;
/** A scrape has other numbers to bring home; Prometheus gives up after ten seconds. */
const WAIT_MS = 2_000;

export interface KeptOptions {
  read(): Promise<void>;
  /** Told by each who asks in vain. */
  onFailure(error: unknown): void;
  now(): number;
  waitMs?: number | undefined;
}

/** The registry's metrics, after a look at the database: once a second at most, and never two at a time. */
export function keptForASecond(
  registry: Registry,
  { read, onFailure, now, waitMs = WAIT_MS }: KeptOptions,
): Page {
  /** Undefined where none is under way. */
  let reading: Promise<void> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const refresh = async (): Promise<void> => {
    if (reading === undefined && now() - readAt >= KEEP_MS) {
      readAt = now();
      reading = read().finally(() => {
        reading = undefined;
      });
    }
    try {
      await inTime(waitMs, reading, () => new Error(`no answer within ${waitMs} ms`));
    } catch (error) {
      onFailure(error);
    }
  };
  return {
    async page() {
      await refresh();
      return registry.metrics();
    },
  };
}
