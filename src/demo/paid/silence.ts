// Stripe does not answer while the first holds run out, so that seats come back by the grace instead of a session that is closed.

import { setTimeout as delay } from 'node:timers/promises';
import type { StandInClient } from '../../stripe_stand_in/client.ts';

export interface Silence {
  readonly standIn: Pick<StandInClient, 'set'>;
  /** How long seats are held, from now on. */
  readonly holdSec: number;
  readonly graceSec: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Before the first hold is over. */
const EARLY_MS = 1_000;
/** After the last of the first seats is free. */
const LATE_MS = 4_000;

/** Ends when Stripe answers again, or when the show is over before it fell silent. */
export async function silenceStripe({ standIn, holdSec, graceSec, say, signal }: Silence): Promise<void> {
  try {
    await delay(Math.max(0, holdSec * 1_000 - EARLY_MS), undefined, { signal });
    const lastsMs = EARLY_MS + graceSec * 1_000 + LATE_MS;
    // Until a moment, not until told: it answers again whatever becomes of this process.
    await standIn.set({ downUntilMs: Date.now() + lastsMs });
    say(`Stripe does not answer for ${lastsMs / 1_000} s, while the first holds run out.`);
    await delay(lastsMs, undefined, { signal });
    say('Stripe answers again. Sessions that were left open are closed now.');
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
