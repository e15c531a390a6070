// What the log says of failures that come again and again, a thousand times a second while something is away.

import type { Clock } from './ports.ts';

/** Failures of an outage that are alike get one line in so long. */
const OUTAGE_EVERY_MS = 10_000;
/** So many kinds are told apart; the one that came first makes room. */
const KINDS_MAX = 200;

/** Goes into the line. */
export interface Untold {
  /** How many alike were left out since the line before, which was written then. */
  readonly untold?: number;
  readonly untold_since?: string;
}

export class RareLines {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #told = new Map<string, { atMs: number; untold: number }>();

  constructor(clock: Clock, everyMs = OUTAGE_EVERY_MS) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  /** What to add to the line about a failure of this kind; undefined where it is left out. */
  next(kind: string): Untold | undefined {
    const atMs = this.#clock();
    const told = this.#told.get(kind);
    // A clock that was set back says nothing about the time since.
    if (told !== undefined && atMs >= told.atMs && atMs < told.atMs + this.#everyMs) {
      told.untold++;
      return undefined;
    }
    const [oldest] = this.#told.keys();
    if (told === undefined && oldest !== undefined && this.#told.size >= KINDS_MAX) this.#told.delete(oldest);
    this.#told.set(kind, { atMs, untold: 0 });
    if (told === undefined || told.untold === 0) return {};
    return { untold: told.untold, untold_since: new Date(told.atMs).toISOString() };
  }
}
