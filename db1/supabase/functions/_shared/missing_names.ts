// Names that a database did not know a moment ago: asking again within a second would cost it work for nothing. A name that
// is created meanwhile is found when that second is over.

import type { Clock } from './ports.ts';

export const MISSING_MS = 1_000;
/** Names come from outside, 200 characters at most: this many take about 5 MB. Beyond it the oldest is forgotten. */
const MAX_NAMES = 10_000;

/** A decoder drops a byte order mark unless it is told to keep it, and the name without it is another pool's. */
const [encoder, decoder] = [new TextEncoder(), new TextDecoder('utf-8', { ignoreBOM: true })];

export class MissingNames {
  /** Until when each is believed to be missing, oldest first. */
  readonly #untilMs = new Map<string, number>();
  readonly #now: Clock;

  constructor(now: Clock) {
    this.#now = now;
  }

  has(name: string): boolean {
    const untilMs = this.#untilMs.get(name);
    return untilMs !== undefined && this.#now() < untilMs;
  }

  add(name: string): void {
    // Deleted first, so that the order of the map is that of the latest answers.
    this.#untilMs.delete(name);
    const [oldest] = this.#untilMs.keys();
    if (oldest !== undefined && this.#untilMs.size >= MAX_NAMES) this.#untilMs.delete(oldest);
    this.#untilMs.set(flat(name), this.#now() + MISSING_MS);
  }
}

/** A part of a text keeps all of it in memory, here a whole request of up to 8 KB: the same name as a text of its own. */
const flat = (name: string): string => decoder.decode(encoder.encode(name));
