// Inline mode: an event takes effect while its provider waits for the answer. The row's lock in the database makes sure
// that it does so once; in this process, deliveries of the same event share one try instead of queueing for that lock. Events take
// turns: so many of one handler take effect side by side, and the endpoints that share it are served in turn.

import { HttpError } from '../errors.ts';
import { meaningOf } from '../failure.ts';
import { Limiter, type Patience } from '../limiter.ts';
import type { Clock, Log, Metrics, Tracer } from '../ports.ts';
import { type Outcome, tellOutcome } from './outcome.ts';
import type { Endpoint, Processed, Recorded, WebhookStore } from './ports.ts';
import { EVENTS_PER_HANDLER } from './processor.ts';
import type { ReadEvent } from './provider.ts';
import { traceOutcome } from './trace.ts';

export interface InlinePorts {
  readonly store: Pick<WebhookStore, 'processEvent'>;
  /** Runs the event's TypeScript handler; undefined where it is not here, or another holds the event. */
  readonly runTypescript?: (id: string) => Promise<Processed | undefined>;
  /** What this process may have of a limit; all of it where left out. */
  readonly share?: (limit: number) => number;
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

/** A handler in SQL has a connection for each meanwhile. */
export const SQL_EVENTS_PER_HANDLER = 4;
/** An event that waits longer is a worker's: its provider waits 10 s for all of the delivery. */
const PATIENCE: Patience = { ms: 3_000, late: () => new HttpError('overloaded', RECORDED_HINT) };

export class Inline {
  readonly #ports: InlinePorts;
  /** By lane, which is a handler's. */
  readonly #sqlTurns = new Map<number, Limiter>();
  readonly #typescriptTurns = new Map<number, Limiter>();
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
    const { webhook_id } = endpoint;
    let startedMs = 0;
    const processed = await this.#turnsOf(lane, this.#sqlTurns, SQL_EVENTS_PER_HANDLER).run(() => {
      startedMs = now();
      return store.processEvent(id, lane).catch(refuse);
    }, webhook_id);
    // A delivery to another server is processing it now: the answer says only that it is recorded.
    if (processed.outcome === 'in_flight') return 'recorded';
    if (processed.outcome === 'typescript') {
      const turns = this.#turnsOf(lane, this.#typescriptTurns, EVENTS_PER_HANDLER);
      const here = await turns.run(async () => runTypescript?.(id), webhook_id);
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

  #turnsOf(lane: number, turns: Map<number, Limiter>, limit: number): Limiter {
    let ofLane = turns.get(lane);
    if (ofLane === undefined) {
      ofLane = new Limiter(this.#ports.share?.(limit) ?? limit, PATIENCE);
      turns.set(lane, ofLane);
    }
    return ofLane;
  }
}

/** The event is recorded, whatever went wrong after that. A handler that took too long was stopped. */
function refuse(error: unknown): never {
  const { answer } = meaningOf(error);
  if (answer === 'internal') throw error;
  throw new HttpError(answer === 'busy' ? 'processing_failed' : answer, RECORDED_HINT, error);
}
