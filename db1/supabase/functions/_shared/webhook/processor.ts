// Queued mode: one step takes a batch of due events under leases and lets each take effect. SQL handlers run in sets in
// the database; TypeScript handlers run here, each in a transaction of its own.

import { isUnavailable } from '../failure.ts';
import { byHalves } from '../halving.ts';
import { startHeartbeat } from '../heartbeat.ts';
import type { Clock, Log, Metrics, Tracer } from '../ports.ts';
import { textOf } from '../text.ts';
import type { Handler } from './handlers.ts';
import { type Outcome, tellOutcome } from './outcome.ts';
import type { Processed, TakenEvent, WebhookStore } from './ports.ts';
import { handBack, type RunPorts, runHandler } from './run_handler.ts';
import { traceOutcome } from './trace.ts';
import { verdictOf } from './verdict.ts';

export interface ProcessorPorts extends RunPorts {
  readonly store: WebhookStore;
  /** By name. */
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  readonly now: Clock;
}

export interface ProcessReport {
  /** Events taken. */
  readonly total: number;
  /** Events by what became of them: a status, lost_lease or handed_back. */
  readonly outcomes: Readonly<Record<string, number>>;
}

/** TypeScript handlers mostly wait for somebody; this many may wait side by side. */
const HANDLERS_AT_ONCE = 8;
/** A third of the shortest lease that makes sense for a handler that calls others: two heartbeats may fail. */
const HEARTBEAT_MS = 1_000;

type Tell = (event: TakenEvent, processed: Processed) => void;

export class Processor {
  readonly #ports: ProcessorPorts;
  readonly #batchSize: number;

  constructor(ports: ProcessorPorts, batchSize: number) {
    this.#ports = ports;
    this.#batchSize = batchSize;
  }

  /** Aborting the signal makes a step finish what it has begun and hand back the rest. */
  async step(signal: AbortSignal): Promise<ProcessReport> {
    const { store, handlers, now } = this.#ports;
    const taken = await store.take(this.#batchSize, [...handlers.keys()]);
    const outcomes: Record<string, number> = {};
    if (taken.length === 0) return { total: 0, outcomes };
    const startedMs = now();
    const tell: Tell = (event, processed) => {
      outcomes[processed.outcome] = (outcomes[processed.outcome] ?? 0) + 1;
      this.#tell(event, processed, startedMs);
    };
    const inSql = taken.filter((event) => event.handler_kind !== 'typescript');
    const here = taken.filter((event) => event.handler_kind === 'typescript');
    const stopHeartbeat = here.length === 0 ? undefined : this.#startHeartbeat(here);
    try {
      await this.#processSet(inSql, tell);
      await this.#runHere(here, signal, tell);
    } finally {
      await stopHeartbeat?.();
    }
    return { total: taken.length, outcomes };
  }

  /** Takes one event by its id and runs its TypeScript handler; undefined where it is not for us now. */
  async runOne(id: string, signal: AbortSignal): Promise<Processed | undefined> {
    const event = await this.#ports.store.begin(id, [...this.#ports.handlers.keys()]);
    if (event === undefined) return undefined;
    let became: Processed | undefined;
    const startedMs = this.#ports.now();
    const stopHeartbeat = this.#startHeartbeat([event]);
    try {
      await this.#runHere([event], signal, (_, processed) => {
        became = processed;
        this.#tell(event, processed, startedMs);
      });
    } finally {
      await stopHeartbeat();
    }
    return became;
  }

  async #processSet(events: readonly TakenEvent[], tell: Tell): Promise<void> {
    if (events.length === 0) return;
    const { store } = this.#ports;
    await byHalves(events, {
      async work(members) {
        const became = await store.process(members);
        for (const event of members) tell(event, became.get(event.id) ?? LOST_LEASE);
      },
      mayBeOneMembers: (error) => !isUnavailable(error),
      async fail(members, error) {
        // Nothing of the set has happened. While the database is away there is nothing to do but to come back.
        if (isUnavailable(error)) throw error;
        const text = textOf(error);
        for (const event of members)
          tell(event, {
            status: null,
            error: text,
            outcome: await store.finish(event, verdictOf(error), text),
          });
      },
    });
  }

  async #runHere(events: readonly TakenEvent[], signal: AbortSignal, tell: Tell): Promise<void> {
    const waiting = [...events];
    const work = async (): Promise<void> => {
      while (!signal.aborted) {
        const event = waiting.shift();
        if (event === undefined) return;
        const handler = this.#ports.handlers.get(event.handler_name ?? '');
        // Registered by another between the look for events and the taking of them.
        const isOurs = handler !== undefined;
        tell(
          event,
          await (isOurs ? runHandler(event, handler, this.#ports, signal) : handBack(event, this.#ports)),
        );
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: HANDLERS_AT_ONCE }, work));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    for (const event of waiting) tell(event, await handBack(event, this.#ports));
  }

  #tell(event: TakenEvent, { outcome, error }: Processed, startedMs: number): void {
    const told: Outcome = {
      webhookId: event.webhook_id,
      provider: event.provider,
      eventId: event.event_id,
      eventType: event.event_type,
      attempts: event.attempts,
      takeovers: event.takeovers,
      result: outcome,
      error,
      durationMs: this.#ports.now() - startedMs,
    };
    tellOutcome(told, this.#ports.log, this.#ports.metrics);
    traceOutcome(event.id, told, this.#ports);
  }

  #startHeartbeat(events: readonly TakenEvent[]): () => Promise<void> {
    return startHeartbeat(() => this.#ports.store.extend(events), HEARTBEAT_MS, this.#ports.log).stop;
  }
}

const LOST_LEASE: Processed = { status: null, error: null, outcome: 'lost_lease' };
