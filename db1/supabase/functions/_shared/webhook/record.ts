// Verified deliveries become rows, many in one statement. The answer comes after the commit.

import { Coalescer } from '../coalescer.ts';
import { type Blame, blameOf, codeOf, mayBeOneMembers } from '../failure.ts';
import type { Turn } from '../ports.ts';
import type { Delivery, Recorded, WebhookStore } from './ports.ts';

/** Bodies range from 200 bytes to a megabyte; a larger statement would delay every delivery queued behind it. */
const MAX_FLUSH_BYTES = 4 * 1024 * 1024;
/** What a row costs beside its body. */
const EVENT_BYTES = 512;

/** The same bytes will be refused again: data that jsonb does not hold, values too deep or too large. */
const UNSTORABLE: ReadonlySet<Blame> = new Set<Blame>(['data', 'size']);

export class Recorder {
  readonly #coalescer: Coalescer<Delivery, Recorded[]>;

  constructor(record: WebhookStore['record'], turn?: Turn) {
    this.#coalescer = new Coalescer((deliveries) => record(deliveries), {
      keyOf: ({ webhookId }) => webhookId,
      mayBeOneMembers,
      weigh: ({ body, events }) => body.length + events.length * EVENT_BYTES,
      maxWeight: MAX_FLUSH_BYTES,
      ...(turn && { turn }),
    });
  }

  /** One answer for each event, in their order. */
  async record(delivery: Delivery): Promise<Recorded[]> {
    try {
      return await this.#coalescer.submit(delivery);
    } catch (error) {
      if (!UNSTORABLE.has(blameOf(error))) throw error;
      // No reader foresees everything that jsonb refuses. The bytes are kept, and a person has a look.
      return this.#coalescer.submit(quarantined(delivery, `the database refused it (${codeOf(error)})`));
    }
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  drain(): Promise<void> {
    return this.#coalescer.drain();
  }
}

function quarantined(delivery: Delivery, reason: string): Delivery {
  return {
    ...delivery,
    events: delivery.events.map((event) => ({
      ...event,
      payload: null,
      quarantine: event.quarantine ?? reason,
    })),
  };
}
