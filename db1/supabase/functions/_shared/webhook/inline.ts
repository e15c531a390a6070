// Inline mode: an event takes effect while its provider waits for the answer. The row's lock in the database makes sure
// that it does so once; in this process, deliveries of the same event share one try instead of queueing for that lock.

import { HttpError } from '../errors.ts';
import { meaningOf } from '../failure.ts';
import type { Clock, Log, Metrics, Tracer } from '../ports.ts';
import { type Outcome, tellOutcome } from './outcome.ts';
import type { Endpoint, Processed, Recorded, WebhookStore } from './ports.ts';
import type { ReadEvent } from './provider.ts';
import { traceOutcome } from './trace.ts';

export interface InlinePorts {
  readonly store: Pick<WebhookStore, 'processEvent'>;
  /** Runs the event's TypeScript handler; undefined where it is not here, or another holds the event. */
  readonly runTypescript?: (id: string) => Promise<Processed | undefined>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  readonly now: Clock;
}

export type InlineResult = 'processed' | 'skipped' | 'dead_letter' | 'recorded' | 'failed';

const RESULTS: Readonly<Record<string, InlineResult>> = {
  success: 'processed',
  skipped: 'skipped',
  dead_letter: 'dead_letter',
};
const RECORDED_HINT =
  'The event is recorded, and a worker goes on with it. Delivering it again does no harm.';

export class Inline {
  readonly #ports: InlinePorts;
  readonly #underWay = new Map<string, Promise<InlineResult>>();

  constructor(ports: InlinePorts) {
    this.#ports = ports;
  }

  /** What became of a recorded event. One that has ended stays as it is; one that failed before is tried again now. */
  process(endpoint: Endpoint, event: ReadEvent, { id, status, lane }: Recorded): Promise<InlineResult> {
    const ended = RESULTS[status];
    if (ended !== undefined) return Promise.resolve(ended);
    let running = this.#underWay.get(id);
    if (running === undefined) {
      running = this.#try(endpoint, event, id, lane).finally(() => this.#underWay.delete(id));
      this.#underWay.set(id, running);
    }
    return running;
  }

  async #try(endpoint: Endpoint, event: ReadEvent, id: string, lane: number): Promise<InlineResult> {
    const { store, runTypescript, log, metrics, now } = this.#ports;
    const startedMs = now();
    const processed = await store.processEvent(id, lane).catch(refuse);
    // A delivery to another server is processing it now: the answer says only that it is recorded.
    if (processed.outcome === 'in_flight') return 'recorded';
    if (processed.outcome === 'typescript') {
      const here = await runTypescript?.(id);
      // A process that has the handler will process it: the answer says only that it is recorded.
      return here === undefined ? 'recorded' : (RESULTS[here.outcome] ?? 'failed');
    }
    const outcome: Outcome = {
      webhookId: endpoint.webhook_id,
      provider: endpoint.provider,
      eventId: event.eventId,
      eventType: event.eventType,
      result: processed.outcome,
      error: processed.error,
      durationMs: now() - startedMs,
    };
    tellOutcome(outcome, log, metrics);
    traceOutcome(id, outcome, this.#ports);
    return RESULTS[processed.outcome] ?? 'failed';
  }
}

/** The event is recorded, whatever went wrong after that. A handler that took too long was stopped. */
function refuse(error: unknown): never {
  const { answer } = meaningOf(error);
  if (answer === 'internal') throw error;
  throw new HttpError(answer === 'busy' ? 'processing_failed' : answer, RECORDED_HINT, error);
}
