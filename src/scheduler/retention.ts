// Removes what is older than the rules of each database say (audit.retention), in small transactions with pauses between them, so
// that neither a lock nor the disk is held up. Any number of processes may: SQL lets one prune at a time.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#core/ports.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { startLoop } from '../loop.ts';

const LOOK_EVERY_MS = 10 * 60 * 1_000;
/** About two milliseconds: 42 µs a row, and 28 with twice as many, which a delivery beside it would wait for longer. */
export const ROWS_AT_ONCE = 50;
/** A part is followed by a pause of so many times its length: old rows can wait, deliveries cannot. */
const PAUSES_A_PART = 4;
const LEAST_PAUSE_MS = 10;

export interface Retention {
  stop(): Promise<void>;
}

export interface Pruned {
  readonly what: string;
  readonly gone: number;
}

/** Each database by itself: while one is away the others go on. */
export function startRetention(urls: readonly string[], log: Log): Retention {
  const sides = urls.map((url) => {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-retention', log });
    return {
      db,
      loop: startLoop('removing what is old', LOOK_EVERY_MS, log, (signal) => prune(db, log, signal)),
    };
  });
  return {
    async stop() {
      await Promise.all(sides.map(({ loop }) => loop.stop()));
      await Promise.all(sides.map(({ db }) => db.end()));
    },
  };
}

/** All that is old now. `onPart` is told of each part and how long it took. */
export async function prune(
  db: Database,
  log: Log,
  signal?: AbortSignal,
  onPart: (part: Pruned, tookMs: number) => void = () => undefined,
): Promise<void> {
  const totals: Record<string, number> = {};
  while (!signal?.aborted) {
    const startMs = performance.now();
    const [part] = await db.call<Pruned>('public.prune_step', { p_limit: ROWS_AT_ONCE });
    const tookMs = performance.now() - startMs;
    if (part === undefined) break;
    onPart(part, tookMs);
    totals[part.what] = (totals[part.what] ?? 0) + part.gone;
    await sleep(Math.max(LEAST_PAUSE_MS, PAUSES_A_PART * tookMs), undefined, { signal }).catch(
      () => undefined,
    );
  }
  if (Object.keys(totals).length > 0) log.info('removed what is old', totals);
}
