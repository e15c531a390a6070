// A circuit breaker for one target: the ledger, or one hook. While it is open nobody calls the target and the pools
// that need it are paused, so an outage uses up nobody's attempts.

import type { Clock } from '../ports.ts';
import type { Delivery } from './delivery.ts';

/** The first pause; it doubles with each probe that fails. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** Failures of this many different messages, without a success between, are an outage; one message's are its own. */
const FAILURES_IN_A_ROW = 3;

export class Breaker {
  readonly #now: Clock;
  readonly #onChange: (isDown: boolean) => void;
  #openUntilMs = 0;
  #pauseMs = 0;
  /** Messages that have failed since the last success; no more are kept than make an outage. */
  readonly #failing = new Set<number>();
  /** Counts the successes: failures of one row have none between them. */
  #row = 0;

  /** `onChange` hears when the target becomes suspect, and when it has answered again or nobody needs it any more. */
  constructor(now: Clock, onChange: (isDown: boolean) => void = () => undefined) {
    this.#now = now;
    this.#onChange = onChange;
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

  /** Nobody needs the target any more, so nobody will call it and find that it answers. */
  retire(): void {
    if (this.isSuspect) this.#onChange(false);
  }

  /** The target could not be reached, or said that it cannot serve now. */
  outage(): void {
    if (this.openUntilMs > 0) return;
    if (!this.isSuspect) this.#onChange(true);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
    this.#openUntilMs = this.#now() + this.#pauseMs;
  }

  /** The target failed this message. Returns the row of failures it stands in, to ask `isToBlame` about later. */
  failed(msgId: number): number {
    if (this.#failing.size < FAILURES_IN_A_ROW) this.#failing.add(msgId);
    if (this.#failing.size >= FAILURES_IN_A_ROW) this.outage();
    return this.#row;
  }

  /** True when the failures of this row are the target's doing and not their messages'. */
  isToBlame(row: number): boolean {
    return row === this.#row && this.#failing.size >= FAILURES_IN_A_ROW;
  }
}

/**
 * The failures of one step. Whether a failure is the message's own or its target's shows only when the others were tried:
 * verdicts are given at the end of the step.
 */
export class Trouble {
  readonly #failures: { delivery: Delivery; breaker: Breaker; row: number }[] = [];

  /** The target failed this delivery, which is to be tried again. */
  failed(delivery: Delivery, breaker: Breaker, reason: string): void {
    delivery.end('retry', reason);
    this.#failures.push({ delivery, breaker, row: breaker.failed(delivery.msgId) });
  }

  /** What fails for one message after another is an outage and uses up nobody's attempts. */
  settle(): void {
    for (const { delivery, breaker, row } of this.#failures)
      if (breaker.isToBlame(row)) delivery.end('outage', 'its target fails one message after another');
  }
}
