// The failures of one group of deliveries, until it shows whose they are.

import type { Breaker } from '../breaker.ts';
import type { Delivery } from './delivery.ts';

/**
 * Whether a failure is the message's own or its target's shows only when the others were tried:
 * verdicts are given at the end of the group.
 */
export class Trouble {
  readonly #failures: { delivery: Delivery; breaker: Breaker; row: number }[] = [];

  /** The target failed this delivery, which is to be tried again. `why` as a breaker takes it. */
  failed(delivery: Delivery, breaker: Breaker, reason: string, why?: string): void {
    delivery.end('retry', reason);
    this.#failures.push({ delivery, breaker, row: breaker.failed(delivery.msgId, why) });
  }

  has(delivery: Delivery): boolean {
    return this.#failures.some((failure) => failure.delivery === delivery);
  }

  /**
   * A target that fails for one message after another is down: that uses up no attempts. These messages come back after the
   * target is probed, so that the probe meets other messages too.
   */
  settle(): void {
    for (const { delivery, breaker, row } of this.#failures)
      if (breaker.isToBlame(row)) delivery.endObstructed('its target fails one message after another');
  }
}
