// The failures of one group of deliveries, until it shows whose they are.

import type { Breaker } from '../breaker.ts';
import type { Delivery } from './delivery.ts';

/**
 * Whether a failure is the message's own or its target's shows only when the others were tried:
 * verdicts are given at the end of the group.
 */
export class Trouble {
  readonly #failures: { delivery: Delivery; breaker: Breaker; row: number }[] = [];

  /** The target failed this delivery, which is to be tried again. */
  failed(delivery: Delivery, breaker: Breaker, reason: string): void {
    delivery.end('retry', reason);
    this.#failures.push({ delivery, breaker, row: breaker.failed(delivery.msgId) });
  }

  /** What fails for one message after another is an outage and uses up no attempts. */
  settle(): void {
    for (const { delivery, breaker, row } of this.#failures)
      if (breaker.isToBlame(row)) delivery.end('outage', 'its target fails one message after another');
  }
}
