// What other processes may have changed in the intake: read again when it is used, and remembered while the intake is away.

import { within } from '#core/deadline.ts';
import type { Clock, Log } from '#core/ports.ts';

/** A change in one process is known to the others after so long. */
export const READ_EVERY_MS = 1_000;
/** While the intake is away operators need the console most: after so long they are let in by what is known here. */
const WAIT_MS = 500;

export class Refreshed {
  readonly #read: () => Promise<void>;
  readonly #now: Clock;
  readonly #log: Log | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** `read` keeps what it knew where it rejects. */
  constructor(read: () => Promise<void>, now: Clock, log?: Log) {
    this.#read = read;
    this.#now = now;
    this.#log = log;
  }

  /** Resolves when what is known is a second old at most, or when the intake does not answer in time. Never rejects. */
  async settled(): Promise<void> {
    const reading = this.touch();
    // A late answer does not count as a failure here.
    if (reading !== undefined) await within(() => reading, WAIT_MS).catch(() => undefined);
  }

  /** One question at a time, and one a second at most. Never rejects. */
  touch(): Promise<void> | undefined {
    if (this.#reading !== undefined) return this.#reading;
    if (this.#now() - this.#readAtMs < READ_EVERY_MS) return undefined;
    this.#readAtMs = this.#now();
    this.#reading = this.#read()
      // The outage is told of where it hurts; here what is known remains.
      .catch((error) => this.#log?.debug('the intake was not asked what has changed', { cause: error }))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }
}
