// Numbers that a database knows, read when somebody scrapes.

import { inTime } from '#core/deadline.ts';

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

/** Reads when asked, once a second at most and never twice at a time; who asks meanwhile waits for the same. */
export function keptForASecond({ read, onFailure, now, waitMs = WAIT_MS }: KeptOptions): () => Promise<void> {
  /** Undefined where none is under way. */
  let reading: Promise<void> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  return async () => {
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
}
