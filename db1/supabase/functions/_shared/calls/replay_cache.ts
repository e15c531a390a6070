// The replay cache saves the database the question whether a signature is new. It never decides: only `done` is an answer, and
// the caller writes `done` after the row is committed. In every other state (claimed by another request, forgotten, flushed,
// unreachable) the request goes to the database, whose unique index decides.

import type { Clock } from '../ports.ts';
import { TOLERANCE_SEC } from './signature.ts';

/** claimed: by this caller, just now. in_flight: another request has claimed it and may still fail. done: it is stored. */
export type Claim = 'claimed' | 'in_flight' | 'done';

export interface ReplayCache {
  claim(key: string): Claim | Promise<Claim>;
  /** After the commit. */
  done(key: string): void | Promise<void>;
  /** Called by the request that claimed the key and failed, so that the next delivery does not count as a replay. */
  release(key: string): void | Promise<void>;
}

/** A signature is valid from the tolerance before its timestamp to the tolerance after it, and can be replayed in that time. */
export const REPLAY_TTL_MS = 2 * TOLERANCE_SEC * 1_000;
/** About 10 MB. Duplicates come soon after the first, so the oldest entry is the one to forget. */
const MAX_ENTRIES = 50_000;

interface Entry {
  state: 'claimed' | 'done';
  readonly untilMs: number;
}

/** In this process alone: without Redis, or while Redis is away. */
export class MemoryReplayCache implements ReplayCache {
  readonly #now: Clock;
  readonly #maxEntries: number;
  /** In the order of their claims, which is the order of their end. */
  readonly #entries = new Map<string, Entry>();

  constructor(now: Clock, maxEntries = MAX_ENTRIES) {
    this.#now = now;
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  claim(key: string): Claim {
    const entry = this.#entries.get(key);
    if (entry !== undefined && entry.untilMs > this.#now())
      return entry.state === 'done' ? 'done' : 'in_flight';
    this.#put(key, 'claimed');
    return 'claimed';
  }

  done(key: string): void {
    this.#put(key, 'done');
  }

  release(key: string): void {
    if (this.#entries.get(key)?.state === 'claimed') this.#entries.delete(key);
  }

  #put(key: string, state: Entry['state']): void {
    this.#entries.delete(key);
    this.#entries.set(key, { state, untilMs: this.#now() + REPLAY_TTL_MS });
    if (this.#entries.size > this.#maxEntries) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const key of this.#entries.keys()) {
      this.#entries.delete(key);
      return;
    }
  }
}
