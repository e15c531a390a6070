// The bridge as a door: one call does what is due, for as long as one call may take. All kinds of work go side by side, as they do
// in Node's workers: what hangs or fails keeps up nothing else.

import { Bridge } from '../bridge/bridge.ts';
import { Ender, type EndPorts } from '../bridge/ends.ts';
import type { BridgePorts } from '../bridge/ports.ts';
import type { Carrier } from '../inbox/carrier.ts';
import type { Outcomes } from '../lease_worker.ts';
import type { Courier } from '../orders/courier.ts';
import { type HttpRequest, jsonResponse, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { EdgeRoute } from './handler.ts';

/** The smallest limit of the platforms is 150 s; the guard leaves room to finish what is held. */
const GUARD_MS = 50_000;
/** Longer than the guard and three calls of 10 s after it, so that no second worker takes what this one still holds. */
const LEASE_SEC = 90;
const BATCH_SIZE = 100;
const MAX_BODY_BYTES = 64 * 1024;
/** The cron job sends `{}`, people send nothing. A caller that sends more expects something that will not happen: refuse it. */
const NO_ORDERS = { type: 'object', properties: {}, additionalProperties: false } as const satisfies Schema;

export interface BridgeWorkerPorts extends BridgePorts {
  /** Throws a HttpError where the caller may not do this. */
  authorize(request: HttpRequest): string | Promise<string>;
  readonly ends: EndPorts;
  /** A new carrier of the inbox each time, for the same reason as a new bridge. */
  readonly inbox: () => Pick<Carrier, 'drain'>;
  /** New lanes of paid orders each time, in the order in which one's work becomes another's. */
  readonly orders: () => readonly Pick<Courier, 'drain'>[];
  /** Brings the copy of endpoints and sites in DB1 up to date. */
  copyDoors(): Promise<void>;
}

export interface Drained {
  /** "idle" where there was nothing to take. */
  readonly status: 'idle' | 'ok';
  /** Committed. */
  readonly processed: number;
  /** Sent to the dead letters. */
  readonly dlq: number;
  /** Taken. Messages that are neither of the two are retried, or were handed back. */
  readonly total: number;
}

export function bridgeWorkerRoute(path: string, ports: BridgeWorkerPorts): EdgeRoute {
  return {
    method: 'POST',
    path,
    maxBodyBytes: MAX_BODY_BYTES,
    async handle(request) {
      await ports.authorize(request);
      if (request.body.length > 0) readJson(request, NO_ORDERS);
      const { counts, failure, drained } = await work(ports, AbortSignal.timeout(GUARD_MS));
      ports.log.info('drained', { request_id: request.requestId, ...counts, ...drained });
      if (failure !== undefined) throw failure;
      return jsonResponse(200, drained);
    },
  };
}

/** One kind of work. */
interface Part {
  readonly name: string;
  /** Of this database alone: the caller is told when it fails. What waits for DB2 or Stripe goes on waiting, and is only logged. */
  readonly isTold?: true;
  /** Until nothing is due any more. Returns how much it took. */
  carry(signal: AbortSignal): Promise<number>;
}

interface Worked {
  /** By the name of the part. */
  readonly counts: Readonly<Record<string, number>>;
  readonly failure: unknown;
  readonly drained: Drained;
}

async function work(ports: BridgeWorkerPorts, guard: AbortSignal): Promise<Worked> {
  const ender = new Ender(ports.ends);
  // A new bridge each time: what an earlier call learnt about an outage must not make this one sit still.
  const bridge = new Bridge(ports, { batchSize: BATCH_SIZE, leaseSec: LEASE_SEC });
  const outcomes: Outcomes = {};
  const queue: Part = {
    name: 'queue',
    isTold: true,
    async carry(signal) {
      const report = await bridge.drain(signal);
      for (const [outcome, count] of Object.entries(report.outcomes))
        outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
      return report.total;
    },
  };
  const counts: Record<string, number> = {};
  let failure: unknown;
  const carry = async ({ name, isTold, carry }: Part): Promise<number> => {
    try {
      const taken = await carry(guard);
      counts[name] = (counts[name] ?? 0) + taken;
      return taken;
    } catch (cause) {
      ports.log.warn('a part of the work waits', { part: name, cause });
      if (isTold) failure = cause;
      return 0;
    }
  };
  const lines: Part[][] = [
    [
      { name: 'holds', isTold: true, carry: (signal) => ender.expire(signal) },
      { name: 'ends', carry: (signal) => ender.end(signal) },
    ],
    [...ports.orders().map((lane) => partOf('orders', lane)), queue],
    [partOf('inbox', ports.inbox())],
    // By this copy the next outage of DB2 is got through.
    [{ name: 'doors', carry: () => ports.copyDoors().then(() => 0) }],
  ];
  await Promise.all(lines.map((line) => inLine(line, carry)));
  const total = counts.queue ?? 0;
  const drained = {
    status: total === 0 ? ('idle' as const) : ('ok' as const),
    processed: outcomes.committed ?? 0,
    dlq: outcomes.dead_letter ?? 0,
    total,
  };
  return { counts, failure, drained };
}

function partOf(name: string, worker: Pick<Courier, 'drain'>): Part {
  return { name, carry: async (signal) => (await worker.drain(signal)).total };
}

/** All start at once. A part goes again when those before it have ended and carried anything: that may have become its work. */
async function inLine(parts: readonly Part[], carry: (part: Part) => Promise<number>): Promise<number> {
  let before = Promise.resolve(0);
  for (const part of parts) before = carryTwice(part, before, carry);
  return before;
}

async function carryTwice(
  part: Part,
  before: Promise<number>,
  carry: (part: Part) => Promise<number>,
): Promise<number> {
  const first = await carry(part);
  const earlier = await before;
  return earlier === 0 ? first : earlier + first + (await carry(part));
}
