// Whether DB2 can be reached, as the doors of one process know it. A delivery that can go elsewhere waits for DB2 for a bounded
// time, and not at all while DB2 is known to be away: Twilio gives up after 15 s in all, its one retry included.

import { Breaker } from '../breaker.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { canWait, isUnavailable } from '../failure.ts';
import type { Clock } from '../ports.ts';

/** DB2 was asked, and took too long. */
export class Late extends HttpError {}

/** DB2 was not asked: a moment ago it was away. */
export class KnownAway extends HttpError {
  constructor() {
    super('database_unavailable');
  }
}

export class Reach {
  readonly #now: Clock;
  readonly #breaker: Breaker;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #isProbing = false;

  /** `onChange` hears when DB2 goes away, and when it has answered again. */
  constructor(now: Clock, onChange: (isAway: boolean) => void = () => undefined) {
    this.#now = now;
    this.#breaker = new Breaker(now, onChange);
  }

  /**
   * What the work gives. Throws database_unavailable after `ms`, and KnownAway at once while DB2 is away; then one try at a time, with
   * growing pauses, finds out whether it is back.
   */
  async try<Result>(ms: number, work: () => Promise<Result>): Promise<Result> {
    const isProbe = this.#breaker.isSuspect;
    if (isProbe && (this.#isProbing || this.#breaker.openUntilMs > 0)) throw new KnownAway();
    if (isProbe) this.#isProbing = true;
    const startedMs = this.#now();
    try {
      const result = await inTime(ms, work(), () => new Late('database_unavailable'));
      this.#answered();
      return result;
    } catch (error) {
      // Where others were answered meanwhile, it is this one delivery that is stuck.
      const isAway = error instanceof Late ? this.#answeredMs <= startedMs : isUnavailable(error);
      if (isAway) this.#breaker.outage();
      else if (!canWait(error)) this.#answered();
      throw error;
    } finally {
      if (isProbe) this.#isProbing = false;
    }
  }

  #answered(): void {
    this.#answeredMs = this.#now();
    this.#breaker.succeeded();
  }
}
