// Load that can be replayed: random numbers from a seed, and buyers that retry until they are answered.

import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { createRandom } from '../../chaos/random.ts';
import { openSession, type Session } from './sessions.ts';

export type Random = { (): number; below(limit: number): number };

/** Set it to run a failed storm again. */
const SEED_VARIABLE = 'SLUICE_TEST_SEED';
const RETRY_PAUSE_MS = 10;

export function chooseSeed(): number {
  return Number(process.env[SEED_VARIABLE] ?? Date.now() % 1_000_000_000);
}

export function seededRandom(seed: number): Random {
  const { next, below } = createRandom(seed);
  return Object.assign(() => next(), { below });
}

/** What a server that crashes, recovers or is not there yet answers with. Everything else is a failure. */
export function isOutage(error: unknown): boolean {
  const { code, message } = error as Partial<pg.DatabaseError>;
  if (code === undefined) return /terminated|not queryable|closed|ended/i.test(message ?? '');
  return /^(57P0[1-3]|08...|ECONNREFUSED|ECONNRESET|EPIPE)$/.test(code);
}

/** A buyer's connection that is made anew whenever it breaks. */
export function reconnecting(url: () => string) {
  let session: Session | undefined;
  return {
    /** Repeats `ask` over new connections until the database has answered it. */
    async untilAnswered<T>(ask: (session: Session) => Promise<T>): Promise<T> {
      for (;;) {
        try {
          session ??= await openSession(url());
          return await ask(session);
        } catch (error) {
          if (!isOutage(error)) throw error;
          session = undefined;
          await delay(RETRY_PAUSE_MS);
        }
      }
    },
    async close() {
      await session?.close();
    },
  };
}
