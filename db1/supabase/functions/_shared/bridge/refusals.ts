// Validation that refuses claims, told to the log: at most one line a minute for each pool, with how many it stands for.

import type { Log } from '../ports.ts';

/** A hook that refuses all claims would otherwise write a line for each buyer of a burst. */
const TELL_EVERY_MS = 60_000;

interface Tally {
  refused: number;
  reason: string | null;
  toldMs: number;
}

export class Refusals {
  readonly #pools = new Map<string, Tally>();

  add(poolId: string, reason: string | null): void {
    const tally = this.#pools.get(poolId) ?? { refused: 0, reason, toldMs: Number.NEGATIVE_INFINITY };
    tally.refused++;
    tally.reason = reason;
    this.#pools.set(poolId, tally);
  }

  /** Called after each step, so that the last refusals of a burst are told too. A pool that is quiet is forgotten. */
  tell(log: Log, nowMs: number): void {
    for (const [poolId, tally] of this.#pools) {
      if (nowMs - tally.toldMs < TELL_EVERY_MS) continue;
      if (tally.refused === 0) {
        this.#pools.delete(poolId);
        continue;
      }
      // The reason is that of the last one.
      log.warn('validation refused claims', {
        pool_id: poolId,
        refused: tally.refused,
        reason: tally.reason,
      });
      tally.refused = 0;
      tally.toldMs = nowMs;
    }
  }
}
