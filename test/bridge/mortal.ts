// A worker that dies at its k-th call to the world, before the call is made or before its answer is seen.

import type { Wrap } from './fault_support.ts';

export type Moment = 'before' | 'after';

/** Rejects the pending calls of a dead worker when the test buries it; only that worker sees it. */
class Buried extends Error {
  override readonly name = 'Buried';
}

export class Mortal {
  readonly #dieAt: number;
  readonly #moment: Moment;
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly #limbo: Promise<never>;
  #bury: () => void = () => undefined;
  #die: () => void = () => undefined;
  #isDead = false;
  #calls = 0;
  /** Settles when it dies, with the call it died at. */
  readonly died: Promise<void>;
  diedAt = '';

  constructor(dieAt: number, moment: Moment) {
    this.#dieAt = dieAt;
    this.#moment = moment;
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
    // A dead process gets no answers, not even errors: its calls stay open until it is buried.
    this.#limbo = new Promise((_, reject) => {
      this.#bury = () => reject(new Buried());
    });
    this.#limbo.catch(() => undefined);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  readonly wrap: Wrap =
    (name, call) =>
    async (...args) => {
      if (this.#isDead) return this.#limbo;
      const isLast = ++this.#calls === this.#dieAt;
      if (isLast && this.#moment === 'before') return this.#end(name);
      const answer = call(...args);
      this.#inFlight.add(answer);
      try {
        const result = await answer;
        if (!isLast && !this.#isDead) return result;
      } catch (error) {
        if (!isLast && !this.#isDead) throw error;
      } finally {
        this.#inFlight.delete(answer);
      }
      return isLast ? this.#end(name) : this.#limbo;
    };

  #end(name: string): Promise<never> {
    this.#isDead = true;
    this.diedAt = `${this.#moment} call ${this.#dieAt} (${name})`;
    this.#die();
    return this.#limbo;
  }

  /** Waits for what was on the wire when it died, then lets its step end so that no timer is left behind. */
  async bury(step: Promise<unknown>): Promise<void> {
    await Promise.allSettled([...this.#inFlight]);
    this.#bury();
    await step.catch(() => undefined);
  }
}
