// Upkeep that goes on until nothing is left, a part at a time and each part its own transaction: pg_cron has procedures for it,
// but its stand-in cannot commit inside a job.

import { HOLDS_AT_ONCE } from '#core/bridge/ends.ts';
import type { Database } from '../db/database.ts';

/** Ends every hold that is due. */
export async function expireHolds(db: Database, signal: AbortSignal): Promise<void> {
  let expired = HOLDS_AT_ONCE;
  while (expired === HOLDS_AT_ONCE && !signal.aborted) {
    const [row] = await db.call<{ expire_holds: number }>('public.expire_holds', { p_limit: HOLDS_AT_ONCE });
    expired = row?.expire_holds ?? 0;
  }
}

/** Brings back the slots of every pool that lost them in a crash. */
export async function rebuildLostPools(db: Database, signal: AbortSignal): Promise<void> {
  for (;;) {
    const [row] = await db.call<{ rebuild_lost_pool: string | null }>('intake.rebuild_lost_pool', {});
    if ((row?.rebuild_lost_pool ?? null) === null || signal.aborted) return;
  }
}
