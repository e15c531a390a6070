// Seals the rows of the audit logs of all databases. Any number of processes may: SQL lets one seal at a time, and each row once.

import type { Log } from '#core/ports.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { startLoop } from '../loop.ts';

const SEAL_EVERY_MS = 5_000;
const ROWS_AT_ONCE = 1_000;

export interface Sealing {
  stop(): Promise<void>;
}

/** Each database by itself: while one is away the other is sealed. */
export function startSealing(urls: readonly string[], log: Log): Sealing {
  const sides = urls.map((url) => {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-sealer', log });
    return { db, loop: startLoop('sealing the audit log', SEAL_EVERY_MS, log, (signal) => seal(db, signal)) };
  });
  return {
    async stop() {
      await Promise.all(sides.map(({ loop }) => loop.stop()));
      await Promise.all(sides.map(({ db }) => db.end()));
    },
  };
}

/** All that are committed now. */
export async function seal(db: Database, signal?: AbortSignal): Promise<void> {
  let sealed = ROWS_AT_ONCE;
  while (sealed === ROWS_AT_ONCE && !signal?.aborted) {
    const [row] = await db.call<{ seal_audit: number }>('public.seal_audit', { p_limit: ROWS_AT_ONCE });
    sealed = row?.seal_audit ?? 0;
  }
}
