// The bridge as a door: one call carries what waits on the queue, for as long as one call may take.

import { Bridge } from '../bridge/bridge.ts';
import { Ender, type EndPorts } from '../bridge/ends.ts';
import type { BridgePorts } from '../bridge/ports.ts';
import type { Carrier } from '../inbox/carrier.ts';
import type { Courier } from '../orders/courier.ts';
import type { Log } from '../ports.ts';
import { type HttpRequest, jsonResponse, readJson } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { EdgeRoute } from './handler.ts';

/** The smallest limit of the platforms is 150 s; the guard leaves room to finish what is held. */
const GUARD_MS = 50_000;
/** Longer than the guard and three calls of 10 s after it, so that no second worker takes what this one still holds. */
const LEASE_SEC = 90;
const ORDERS_MS = 15_000;
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
      // A new bridge each time: what an earlier call learnt about an outage must not make this one sit still.
      const bridge = new Bridge(ports, { batchSize: BATCH_SIZE, leaseSec: LEASE_SEC });
      const guard = AbortSignal.timeout(GUARD_MS);
      const ended = await endDue(new Ender(ports.ends), ports.log, guard);
      const orders = await carryOrders(ports, guard);
      const drained = await drain(bridge, guard);
      const inbox = await carryInbox(ports, guard);
      ports.log.info('drained', { request_id: request.requestId, ended, orders, inbox, ...drained });
      return jsonResponse(200, drained);
    },
  };
}

/** Holds that ran out and claims that are going to end come first: their slots go back on sale. */
async function endDue(ender: Ender, log: Log, signal: AbortSignal): Promise<number> {
  await ender.expire(signal);
  try {
    return await ender.end(signal);
  } catch (cause) {
    // The ledger is away: these claims stay held, and the queue goes on.
    log.warn('claims that are to end wait', { cause });
    return 0;
  }
}

/** Before the queue, so that what was paid for is carried by the same call; and not for all of it, because Stripe may be slow. */
async function carryOrders({ orders, log }: BridgeWorkerPorts, guard: AbortSignal): Promise<number> {
  const signal = AbortSignal.any([guard, AbortSignal.timeout(ORDERS_MS)]);
  let carried = 0;
  for (const lane of orders())
    try {
      carried += (await lane.drain(signal)).total;
    } catch (cause) {
      // A database is away: its orders go on waiting.
      log.warn('paid orders wait', { cause });
    }
  return carried;
}

/** Deliveries that were accepted while DB2 was away, and the copy of doors by which the next outage is got through. */
async function carryInbox(
  { inbox, copyDoors, log }: BridgeWorkerPorts,
  signal: AbortSignal,
): Promise<number> {
  try {
    const { outcomes } = await inbox().drain(signal);
    await copyDoors();
    return outcomes.recorded ?? 0;
  } catch (cause) {
    log.warn('the inbox waits', { cause });
    return 0;
  }
}

/** Carries until there is nothing to take. After the signal the bridge hands back what it has not decided. */
export async function drain(bridge: Pick<Bridge, 'drain'>, signal: AbortSignal): Promise<Drained> {
  const { total, outcomes } = await bridge.drain(signal);
  return {
    status: total === 0 ? 'idle' : 'ok',
    processed: outcomes.committed ?? 0,
    dlq: outcomes.dead_letter ?? 0,
    total,
  };
}
