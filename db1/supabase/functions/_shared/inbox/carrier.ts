// Carries the inbox to DB2: a lane of the lease worker. Deliveries are recorded by the doors' own recorders, which send them in sets,
// try a failing set by parts, and keep what jsonb cannot hold as bytes. DB2's keys absorb what it has already, so that neither a
// lost answer nor a worker that died after the record makes a second event.

import { createCallRecorder } from '../calls/record.ts';
import type { CallStore, RecordedCall } from '../calls/store.ts';
import { HttpError } from '../errors.ts';
import { type Blame, blameOf, canWait, codeOf, isUnavailable } from '../failure.ts';
import { type Group, type Lane, LeaseWorker, type Outcomes, type Report } from '../lease_worker.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import { Targets } from '../target.ts';
import { textOf } from '../text.ts';
import { tellRecorded } from '../webhook/outcome.ts';
import type { WebhookStore } from '../webhook/ports.ts';
import { Recorder } from '../webhook/record.ts';
import { type CallMessage, deliveryOf, type EventMessage } from './message.ts';
import type { Finish, InboxQueue, TakenMessage, Verdict } from './store.ts';

export interface CarrierPorts {
  readonly queue: InboxQueue;
  readonly events: Pick<WebhookStore, 'record'>;
  readonly calls: Pick<CallStore, 'recordCalls'>;
  /** Throws for what is not base64. */
  readonly fromBase64: (text: string) => Uint8Array;
  /** Told after events have been recorded. */
  readonly wake: () => void;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly now: Clock;
}

/** A delivery is recorded in milliseconds; this is how long those of a worker that died wait. */
const LEASE_SEC = 30;
const HEARTBEATS_PER_LEASE = 3;
/** The inbox is empty except after an outage of DB2, and then a second more does not matter. */
const IDLE_MS = 1_000;
/** Messages of one take, which is bounded by bytes too. */
const BATCH = 100;
/** As of messages of the bridge: what lost so many workers is a dead letter. */
const MAX_TAKEOVERS = 10;
const LANE = 0;
const LEDGER = 'ledger';

/** DB2 is there and does not have, or serve, what is called: it is being migrated or set up wrongly, and no delivery's fault. */
const NOT_SET_UP: ReadonlySet<Blame> = new Set<Blame>(['missing', 'unserved', 'denied']);
/** The same delivery will be refused again. */
const FOR_GOOD: ReadonlySet<Blame> = new Set<Blame>(['refused', 'constraint', 'data', 'size', 'unread']);

export class Carrier {
  readonly #ports: CarrierPorts;
  readonly #targets: Targets;
  readonly #worker: LeaseWorker<TakenMessage>;
  readonly #recorder: Recorder;
  readonly #calls: ReturnType<typeof createCallRecorder>;

  constructor(ports: CarrierPorts, leaseSec = LEASE_SEC) {
    const { queue, log, now } = ports;
    this.#ports = ports;
    this.#recorder = new Recorder((deliveries) => ports.events.record(deliveries));
    this.#calls = createCallRecorder(ports.calls);
    // One delivery asks whether DB2 is back: the others of a long outage need not be taken and handed back for it.
    this.#targets = new Targets({ now, limitOf: () => BATCH, probesOf: () => 1 });
    const lane: Lane = { id: LANE, targets: [LEDGER], occupies: [LEDGER], most: BATCH };
    this.#worker = new LeaseWorker<TakenMessage>(
      {
        name: 'carrier',
        lanes: async () => ((await queue.isEmpty()) ? [] : [lane]),
        take: ([want]) => queue.take(want?.wanted ?? 0, leaseSec),
        takeSuspect: () => queue.takeSuspect(leaseSec),
        laneOf: () => LANE,
        extend: (messages) => queue.extend(messages, leaseSec),
        heartbeatMs: (leaseSec * 1000) / HEARTBEATS_PER_LEASE,
        idleMs: IDLE_MS,
        work: (group, signal) => this.#carry(group, signal),
      },
      { targets: this.#targets, now, log },
    );
  }

  /** Until nothing is due any more. Throws when DB1 cannot be read. */
  drain(signal: AbortSignal): Promise<Report> {
    return this.#worker.drain(signal);
  }

  /** Until the signal aborts, and then finishes or hands back what it holds. */
  run(signal: AbortSignal): Promise<void> {
    return this.#worker.run(signal);
  }

  wake(): void {
    this.#worker.wake();
  }

  async #carry({ items, finish }: Group<TakenMessage>, signal: AbortSignal): Promise<Outcomes> {
    const { queue, metrics } = this.#ports;
    const ends = await Promise.all(items.map((taken) => this.#end(taken, signal)));
    const outcomes: Outcomes = {};
    const finished = await finish(items, () => queue.finish(ends));
    for (const { msg_id, outcome } of finished) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      metrics.count('sluice_inbox_deliveries_total', { outcome });
      if (outcome === 'dead_letter') this.#tellDead(ends.find(({ taken }) => taken.msg_id === msg_id));
    }
    return outcomes;
  }

  async #end(taken: TakenMessage, signal: AbortSignal): Promise<Finish> {
    if (signal.aborted) return { taken, verdict: 'handed_back', reason: null };
    const { breaker } = this.#targets.of(LEDGER);
    const { message, takeovers } = taken;
    if (takeovers >= MAX_TAKEOVERS)
      return { taken, verdict: 'dead_letter', reason: `its worker died ${takeovers} times` };
    try {
      const refusal = await (message.kind === 'event'
        ? this.#recordEvent(message)
        : this.#recordCall(message));
      breaker.succeeded();
      return { taken, verdict: refusal === null ? 'recorded' : 'dead_letter', reason: refusal };
    } catch (error) {
      if (isUnavailable(error) || NOT_SET_UP.has(blameOf(error))) breaker.outage();
      return { taken, verdict: verdictOf(error), reason: `${codeOf(error)} ${textOf(error)}`.trim() };
    }
  }

  async #recordEvent(message: EventMessage): Promise<null> {
    const delivery = deliveryOf(message, this.#ports.fromBase64);
    const recorded = await this.#recorder.record(delivery);
    const endpoint = { webhook_id: message.webhook_id, provider: message.provider };
    if (tellRecorded(endpoint, delivery.events, recorded, this.#ports)) this.#ports.wake();
    return null;
  }

  /** Why the call is not recorded; null where it is. */
  async #recordCall({ call, received_at }: CallMessage): Promise<string | null> {
    const { outcome }: RecordedCall = await this.#calls.submit({ ...call, receivedAt: received_at });
    return outcome === 'event_conflict' ? 'event_conflict: the id is recorded with another content' : null;
  }

  #tellDead(end: Finish | undefined): void {
    const { door, ids } = end?.taken.message ?? {};
    this.#ports.log.error('DB2 refused a delivery of the inbox; it is kept as a dead letter', {
      msg_id: end?.taken.msg_id,
      door,
      ids,
      reason: end?.reason,
    });
  }
}

function verdictOf(error: unknown): Verdict {
  if (canWait(error)) return 'outage';
  const blame = error instanceof HttpError ? 'other' : blameOf(error);
  if (NOT_SET_UP.has(blame)) return 'outage';
  return FOR_GOOD.has(blame) ? 'dead_letter' : 'failed';
}
