// A circuit breaker for one target: the ledger, a hook, a handler. While it is open the worker does not call the target and
// takes nothing of the lanes that need it, so an outage uses up no attempts.

import type { Clock } from './ports.ts';

/** The first pause; it doubles with each probe that fails. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** Failures of this many different items, without a success between, are an outage; one item's are its own. */
const FAILURES_IN_A_ROW = 3;

export class Breaker {
  readonly #now: Clock;
  readonly #onChange: (isDown: boolean) => void;
  readonly #onOutage: (why: string) => void;
  #openUntilMs = 0;
  #pauseMs = 0;
  /** Items that have failed since the last success; no more are kept than make an outage. */
  readonly #failing = new Set<number | string>();
  /** Counts the successes: failures of one row have none between them. */
  #row = 0;

  /**
   * `onChange` hears when the target becomes suspect, and when it has answered again or no lane needs it any more; `onOutage` hears
   * at each try that found it down what the caller knows of the cause, which may change meanwhile.
   */
  constructor(
    now: Clock,
    onChange: (isDown: boolean) => void = () => undefined,
    onOutage: (why: string) => void = () => undefined,
  ) {
    this.#now = now;
    this.#onChange = onChange;
    this.#onOutage = onOutage;
  }

  /** Until when the target is left alone; 0 when it may be called. An open breaker lets a probe through by itself. */
  get openUntilMs(): number {
    return this.#openUntilMs > this.#now() ? this.#openUntilMs : 0;
  }

  /** True from the first outage to the first success. */
  get isSuspect(): boolean {
    return this.#pauseMs > 0;
  }

  succeeded(): void {
    if (this.isSuspect) this.#onChange(false);
    this.#openUntilMs = 0;
    this.#pauseMs = 0;
    this.#failing.clear();
    this.#row++;
  }

  /** No lane needs the target any more, so no call will find that it answers. */
  retire(): void {
    if (this.isSuspect) this.#onChange(false);
  }

  /** The target could not be reached, or said that it cannot serve now. `why` is shown to operators: it names no item. */
  outage(why?: string): void {
    if (this.openUntilMs > 0) return;
    if (!this.isSuspect) this.#onChange(true);
    if (why !== undefined) this.#onOutage(why);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
    this.#openUntilMs = this.#now() + this.#pauseMs;
  }

  /** The target failed this item. Returns the row of failures it stands in, to ask `isToBlame` about later. `why` as of `outage`. */
  failed(item: number | string, why?: string): number {
    if (this.#failing.size < FAILURES_IN_A_ROW) this.#failing.add(item);
    if (this.#failing.size >= FAILURES_IN_A_ROW) this.outage(why);
    return this.#row;
  }

  /** True when the failures of this row are the target's doing and not their items'. */
  isToBlame(row: number): boolean {
    return row === this.#row && this.#failing.size >= FAILURES_IN_A_ROW;
  }
}
