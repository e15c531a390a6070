// Processing on ports that live in memory: a store that keeps what it is told, and a clock that a test moves.

import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import type { Transact } from '#core/transaction.ts';
import type { Handler, Transaction } from '#core/webhook/handlers.ts';
import type { Processed, TakenEvent } from '#core/webhook/ports.ts';
import { Processor, type ProcessorPorts } from '#core/webhook/processor.ts';
import type { RunPorts, Timeouts } from '#core/webhook/run_handler.ts';
import { memoryLog } from '../core/support.ts';

export const SUCCESS: Processed = { status: 'success', error: null, outcome: 'success' };
export const neverAborted = new AbortController().signal;

/** An error as a database driver throws it. */
export const coded = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });

export const SQL_LANE = 1;
const FIRST_TYPESCRIPT_LANE = 2;
const typescriptLanes: string[] = [];

function laneOfHandler(name: string): number {
  if (!typescriptLanes.includes(name)) typescriptLanes.push(name);
  return FIRST_TYPESCRIPT_LANE + typescriptLanes.indexOf(name);
}

/** Without a handler's name it is an event for SQL. */
export function takenEvent(id: string, handler?: string): TakenEvent {
  return {
    id,
    lease_token: `lease of ${id}`,
    lane: handler === undefined ? SQL_LANE : laneOfHandler(handler),
    webhook_id: 'the webhook',
    provider: 'shop',
    event_id: `event ${id}`,
    event_type: 'order.paid',
    occurred_at: '2026-02-24T10:00:00.000Z',
    attempts: 2,
    takeovers: 0,
    payload: { of: id },
    handler_kind: handler === undefined ? 'sql' : 'typescript',
    handler_name: handler ?? null,
    idempotency_key: `key of ${id}`,
    max_attempts: 5,
  };
}

export function handlerOf(parts: Partial<Handler> = {}): Handler {
  return { name: 'h', provider: 'shop', types: ['*'], apply: async () => undefined, ...parts };
}

/** What metrics were told, as lines: the name, the labels' values, the number. */
export function metricLines() {
  const lines: string[] = [];
  const tell = (name: string, labels: Readonly<Record<string, string>>, value: number) =>
    void lines.push(
      [name, ...Object.entries(labels).map(([key, text]) => `${key}=${text}`), value].join(' '),
    );
  return {
    lines,
    count: (name: string, labels: Record<string, string>, by = 1) => tell(name, labels, by),
    observe: tell,
  };
}

export class ProcessWorld {
  nowMs = 5_000;
  readonly takes: { lanes: readonly number[]; wanted: readonly number[] }[] = [];
  readonly begun: { id: string; names: readonly string[] }[] = [];
  readonly sets: string[][] = [];
  /** Whose connections were used, in turn. */
  readonly connections: string[] = [];
  readonly extended: string[][] = [];
  readonly finished: { id: string; lease: string; outcome: string; error: string | null }[] = [];
  readonly calls: { functionName: string; args: Record<string, unknown> }[] = [];
  readonly limitsMs: number[] = [];
  readonly spans: TracedSpan[] = [];
  readonly log = memoryLog();
  readonly metrics = metricLines();

  /** What is due; suspects are those that were taken over. */
  events: TakenEvent[] = [];
  handlers: Handler[] = [];
  timeouts: Timeouts | undefined;
  /** What the database has under each name. */
  isHeld: boolean | undefined = true;
  finishes: (wanted: string) => string | undefined = (wanted) => wanted;
  process: (ids: string[]) => Map<string, Processed> | Promise<Map<string, Processed>> = (ids) =>
    new Map(ids.map((id) => [id, SUCCESS]));
  extend: () => Promise<string[]> = async () => [];
  finish: (outcome: string) => string = (outcome) => outcome;

  readonly store: ProcessorPorts['store'] = {
    lanes: async () => {
      const lanes = new Map(this.events.map((event) => [event.lane, event]));
      return [...lanes.values()].map(({ lane, handler_kind: kind, handler_name }) => ({
        lane,
        kind,
        handler_name,
      }));
    },
    take: async (lanes, wanted) => {
      this.takes.push({ lanes, wanted });
      const isOf = (lane: number) => (event: TakenEvent) => event.lane === lane && event.takeovers === 0;
      return this.#leave(lanes.flatMap((lane, at) => this.events.filter(isOf(lane)).slice(0, wanted[at])));
    },
    takeSuspect: async (lanes) =>
      this.#leave(
        this.events.filter(({ lane, takeovers }) => takeovers > 0 && lanes.includes(lane)).slice(0, 1),
      ),
    begin: async (id, names) => {
      this.begun.push({ id, names });
      return this.events.find((event) => event.id === id);
    },
    extend: async (leases) => {
      this.extended.push(leases.map(({ id }) => id));
      return this.extend();
    },
    finish: async ({ id, lease_token: lease }, outcome, error) => {
      this.finished.push({ id, lease, outcome, error });
      return this.finish(outcome);
    },
  };

  #leave(taken: TakenEvent[]): TakenEvent[] {
    this.events = this.events.filter((event) => !taken.includes(event));
    return taken;
  }

  readonly tx: Transaction = {
    call: async <Row>(functionName: string, args: Record<string, unknown>) => {
      this.calls.push({ functionName, args });
      if (functionName === 'webhook.hold_event')
        return (this.isHeld === undefined ? [] : [{ hold_event: this.isHeld }]) as Row[];
      const status = this.finishes(String(args.p_outcome));
      return (status === undefined ? [] : [{ finish_event: status }]) as Row[];
    },
    query: async () => [],
  };

  transact: Transact = async (work, timeoutMs) => {
    this.limitsMs.push(timeoutMs);
    return work(this.tx);
  };

  ports(): ProcessorPorts {
    return {
      store: this.store,
      connectionsOf: (handler) => ({
        process: async (leases) => {
          this.connections.push(handler);
          this.sets.push(leases.map(({ id }) => id));
          return this.process(leases.map(({ id }) => id));
        },
        transact: (work, timeoutMs) => {
          this.connections.push(handler);
          return this.transact(work, timeoutMs);
        },
      }),
      handlers: new Map(this.handlers.map((handler) => [handler.name, handler])),
      ...(this.timeouts && { timeouts: this.timeouts }),
      log: this.log,
      metrics: this.metrics,
      tracer: { ...NO_TRACER, isOn: true, record: (span) => void this.spans.push(span) },
      now: () => this.nowMs,
    };
  }

  runPorts(): RunPorts {
    return { store: this.store, transact: (work, timeoutMs) => this.transact(work, timeoutMs) };
  }

  processor(batchSize = 100): Processor {
    return new Processor(this.ports(), batchSize);
  }

  step(signal: AbortSignal = neverAborted) {
    return this.processor().step(signal);
  }
}

/** A processor whose SQL handler has shown that it is fast: its sets have eight events. */
export async function grown(world: ProcessWorld) {
  const processor = world.processor();
  for (const size of [2, 4]) {
    world.events = Array.from({ length: size }, (_, index) => takenEvent(`warm ${index}`));
    await processor.step(neverAborted);
  }
  for (const list of [world.sets, world.takes, world.connections, world.log.lines]) list.length = 0;
  return processor;
}
