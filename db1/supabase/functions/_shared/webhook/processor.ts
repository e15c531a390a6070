// Queued mode: lets due events take effect, lane by lane, each lane one handler's. SQL handlers run in sets in the database, one
// set at a time; TypeScript handlers run here, each event in a transaction of its own. No handler waits for another: each has
// its own limit and its own connections.

import { blameOf, isUnavailable } from '../failure.ts';
import { byHalves } from '../halving.ts';
import { startHeartbeat } from '../heartbeat.ts';
import {
  type Group,
  type Lane,
  LeaseWorker,
  type Outcomes,
  type Report,
  type Want,
} from '../lease_worker.ts';
import type { Clock, Log, Metrics, Tracer } from '../ports.ts';
import { Targets } from '../target.ts';
import { textOf } from '../text.ts';
import type { Transact } from '../transaction.ts';
import type { Handler } from './handlers.ts';
import { type Outcome, tellOutcome } from './outcome.ts';
import type { EventLane, Processed, TakenEvent, WebhookStore } from './ports.ts';
import { handBack, runHandler, type Timeouts } from './run_handler.ts';
import { createSetSizes, type SetSizes } from './set_size.ts';
import { traceOutcome } from './trace.ts';
import { verdictOf } from './verdict.ts';

/** What a handler's effects run on: connections that no other handler uses. */
export interface HandlerConnections {
  readonly process: WebhookStore['process'];
  readonly transact: Transact;
}

export interface ProcessorPorts {
  readonly store: Omit<WebhookStore, 'process' | 'processEvent' | 'record' | 'findEndpoint' | 'findReply'>;
  connectionsOf(handler: string): HandlerConnections;
  /** By name. */
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly timeouts?: Timeouts;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  readonly now: Clock;
  /** How long it rests when nothing is due and no notice wakes it; the lease worker's own where left out. */
  readonly idleMs?: number;
}

/** TypeScript handlers mostly wait for other services; so many events of one handler may wait side by side. */
export const EVENTS_PER_HANDLER = 8;
/** A third of the shortest lease that makes sense for a handler that calls others: two heartbeats may fail. */
const HEARTBEAT_MS = 1_000;

/** What the names of targets in TypeScript begin with. */
const TYPESCRIPT = 'typescript ';

type Tell = (event: TakenEvent, processed: Processed) => void;

export class Processor {
  readonly #ports: ProcessorPorts;
  readonly #batchSize: number;
  readonly #sizes: SetSizes;
  readonly #targets: Targets;
  readonly #worker: LeaseWorker<TakenEvent>;
  /** SQL lanes that have a set under way: the next one waits for it, as its handler would. */
  readonly #busy = new Set<number>();
  #onEnd: (outcome: string) => void = () => undefined;

  /** `batchSize`: the largest set of an SQL handler. */
  constructor(ports: ProcessorPorts, batchSize: number) {
    this.#ports = ports;
    this.#batchSize = batchSize;
    this.#sizes = createSetSizes(batchSize);
    const { store, log, now, idleMs } = ports;
    this.#targets = new Targets({
      now,
      limitOf: (name) => this.#limitOf(name),
      probesOf: (name) => this.#probesOf(name),
      onChange: (name, isDown) => this.#tellChange(name, isDown),
    });
    this.#worker = new LeaseWorker<TakenEvent>(
      {
        name: 'processor',
        lanes: async () =>
          (await store.lanes()).filter((lane) => this.#serves(lane)).map((lane) => this.#laneOf(lane)),
        take: (wants) => this.#take(wants),
        takeSuspect: (lanes) => store.takeSuspect(lanes as number[]),
        laneOf: (event) => event.lane,
        groupOf: ({ handler_kind }) => (handler_kind === 'typescript' ? 'here' : 'sql'),
        extend: (events) => store.extend(events),
        heartbeatMs: HEARTBEAT_MS,
        ...(idleMs !== undefined && { idleMs }),
        work: (group, signal) => this.#work(group, signal),
      },
      { targets: this.#targets, now, log },
    );
  }

  /** Takes what there is room for, and returns when all of it has ended; aborting makes it hand back what it can. */
  step(signal: AbortSignal): Promise<Report> {
    return this.#worker.step(signal);
  }

  /** Until no event is due any more. `onEnd` hears what became of each event, also where an outage ends the drain. */
  drain(signal: AbortSignal, onEnd: (outcome: string) => void = () => undefined): Promise<Report> {
    this.#onEnd = onEnd;
    return this.#worker.drain(signal);
  }

  /** Until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#worker.run(signal);
  }

  wake(): void {
    this.#worker.wake();
  }

  /** Takes one event by its id and runs its TypeScript handler; undefined where it is not for us now. */
  async runOne(id: string, signal: AbortSignal): Promise<Processed | undefined> {
    const { store, handlers, log, now } = this.#ports;
    const event = await store.begin(id, [...handlers.keys()]);
    if (event === undefined) return undefined;
    const startedMs = now();
    const heartbeat = startHeartbeat(() => store.extend([event]), HEARTBEAT_MS, log);
    try {
      const became = await this.#runHere(event, signal);
      this.#tell(event, became, startedMs);
      return became;
    } finally {
      await heartbeat.stop();
    }
  }

  /** Another worker serves a TypeScript handler that this process lacks. Any worker serves a lane without a handler. */
  #serves({ kind, handler_name }: EventLane): boolean {
    return kind !== 'typescript' || this.#ports.handlers.has(handler_name ?? '');
  }

  #limitOf(target: string): number {
    return target.startsWith(TYPESCRIPT) ? EVENTS_PER_HANDLER : this.#batchSize;
  }

  /**
   * What a handler fails that is still down has used up an attempt. Of a set the database tries three and hands back the rest,
   * those that never failed first (webhook.run_tasks): one event alone would be the one that fails by itself.
   */
  #probesOf(target: string): number {
    return target.startsWith(TYPESCRIPT) ? 1 : this.#batchSize;
  }

  #tellChange(target: string, isDown: boolean): void {
    const handler = target.slice(target.indexOf(' ') + 1);
    this.#ports.metrics.count('webhook_handler_breaker_open', { handler }, isDown ? 1 : -1);
    if (isDown)
      this.#ports.log.warn('a handler fails event after event and is left alone for a while', { handler });
    else this.#ports.log.info('a handler gets events again', { handler });
  }

  async #take(wants: readonly Want[]): Promise<readonly TakenEvent[]> {
    const open = wants.filter(({ lane }) => !this.#busy.has(lane as number));
    if (open.length === 0) return [];
    return this.#ports.store.take(
      open.map(({ lane }) => lane as number),
      open.map(({ wanted }) => wanted),
    );
  }

  /** Its target is its handler. Events without one are an SQL lane too. */
  #laneOf({ lane, kind, handler_name }: EventLane): Lane {
    const target = targetOf(kind, handler_name);
    const sizes = this.#sizes;
    return {
      id: lane,
      targets: [target],
      occupies: [target],
      get most() {
        return kind === 'typescript' ? EVENTS_PER_HANDLER : sizes.of(lane);
      },
    };
  }

  async #work(group: Group<TakenEvent>, signal: AbortSignal): Promise<Outcomes> {
    const outcomes: Outcomes = {};
    const startedMs = this.#ports.now();
    const tell: Tell = (event, processed) => {
      outcomes[processed.outcome] = (outcomes[processed.outcome] ?? 0) + 1;
      this.#onEnd(processed.outcome);
      this.#tell(event, processed, startedMs);
    };
    const isHere = group.items[0]?.handler_kind === 'typescript';
    await (isHere ? this.#runGroup(group, signal, tell) : this.#processSet(group.items, tell));
    return outcomes;
  }

  async #processSet(events: readonly TakenEvent[], tell: Tell): Promise<void> {
    const { store, connectionsOf, now } = this.#ports;
    const [first] = events as [TakenEvent];
    const { process } = connectionsOf(first.handler_name ?? '');
    const startedMs = now();
    // A suspect runs beside the set of its lane, and says nothing about how long a set takes.
    const isSet = first.takeovers === 0;
    if (isSet) this.#busy.add(first.lane);
    try {
      await byHalves(events, {
        work: async (members) => {
          const became = await process(members);
          this.#judgeSet(members, became);
          for (const event of members) tell(event, became.get(event.id) ?? LOST_LEASE);
        },
        mayBeOneMembers: (error) => !isUnavailable(error),
        fail: async (members, error) => {
          // Nothing of the set has happened. While the database is away there is nothing to do but to come back.
          if (isUnavailable(error)) throw error;
          const [text, verdict] = [textOf(error), verdictOf(error)];
          // In a set it would outlast the statement for all of them again.
          const end = blameOf(error) === 'slow' ? 'slow' : verdict;
          for (const event of members) {
            const outcome = await store.finish(event, end, text);
            this.#judge(event, { status: null, error: text, outcome, verdict });
            tell(event, { status: null, error: text, outcome });
          }
        },
      });
    } finally {
      if (isSet) {
        this.#busy.delete(first.lane);
        this.#sizes.learn(first.lane, events.length, now() - startedMs);
      }
    }
  }

  async #runGroup({ items, finish }: Group<TakenEvent>, signal: AbortSignal, tell: Tell): Promise<void> {
    const ends = await Promise.allSettled(
      items.map(async (event) => {
        const became = await this.#runHere(event, signal);
        this.#judge(event, became);
        tell(event, became);
        // Its room is another event's now.
        await finish([event], async () => undefined);
      }),
    );
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /** A handler that fails everything, or the service that it calls, is down: all its events would use up their attempts. */
  #judge({ id, handler_kind, handler_name }: TakenEvent, processed: Processed): void {
    const { breaker } = this.#targets.of(targetOf(handler_kind, handler_name));
    if (isAnswer(processed)) breaker.succeeded();
    else if (processed.verdict === 'failed') breaker.failed(id);
  }

  /** One success is enough to show that the handler works, whatever failed beside it. */
  #judgeSet(events: readonly TakenEvent[], became: ReadonlyMap<string, Processed>): void {
    const told = events.map((event) => ({ event, processed: became.get(event.id) ?? LOST_LEASE }));
    const answered = told.filter(({ processed }) => isAnswer(processed));
    for (const { event, processed } of answered.length > 0 ? answered.slice(0, 1) : told)
      this.#judge(event, processed);
  }

  #runHere(event: TakenEvent, signal: AbortSignal): Promise<Processed> {
    const { store, handlers, connectionsOf, timeouts } = this.#ports;
    const name = event.handler_name ?? '';
    const handler = handlers.get(name);
    // Registered by another between the look for lanes and the taking of the event.
    if (handler === undefined || signal.aborted) return handBack(event, { store });
    const { transact } = connectionsOf(name);
    return runHandler(event, handler, { store, transact, ...(timeouts && { timeouts }) }, signal);
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
}

const targetOf = (kind: EventLane['kind'], name: string | null): string =>
  `${kind ?? 'no'} ${name ?? 'handler'}`;

const isAnswer = ({ outcome }: Processed): boolean => outcome === 'success' || outcome === 'skipped';

const LOST_LEASE: Processed = { status: null, error: null, outcome: 'lost_lease' };
