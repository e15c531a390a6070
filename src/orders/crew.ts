// The workers of paid orders in this process: one courier and one refunder, and a closer for each cell.

import type { CallFunction } from '#core/call_function.ts';
import { canWait } from '#core/failure.ts';
import type { Outcomes } from '#core/lease_worker.ts';
import { Closer } from '#core/orders/closer.ts';
import { Courier, type CourierOptions } from '#core/orders/courier.ts';
import { Refunder } from '#core/orders/refunder.ts';
import { type Log, type Metrics, NO_METRICS } from '#core/ports.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import type { SecretSource } from '#core/webhook/secrets.ts';
import { createDatabase } from '../db/database.ts';
import { cellsOf, type FleetOptions } from '../fleet/addresses.ts';
import { startWorker, type Worker } from '../worker.ts';
import { openWorkerFleet, orderCells } from './cells.ts';
import { openPayments } from './stripe.ts';

export interface OrderCrewOptions extends FleetOptions {
  db2Url: string;
  secretOf: SecretSource;
  /** Where Stripe is. */
  urls: ApiUrls;
  metrics: Metrics;
  log: Log;
  /** Told when claims were paid for, for workers in this process. */
  onFunded?: () => void;
  courier?: CourierOptions;
  /** Of the closer and the refunder; those of the core where left out. */
  leaseSec?: number;
}

const APPLICATION = 'sluice-orders';
/** One takes, one finishes, two carry voids or put rows back. */
const COURIER_CONNECTIONS = 4;
/** Pulls, refunds and the look for keys, none of which may wait for the courier. */
const MONEY_CONNECTIONS = 3;

/** Runs until stopped. */
export function startOrderCrew(options: OrderCrewOptions): Worker {
  const { parts, start, end } = openOrders(options);
  const starting = start();
  const workers = parts.map((part) => startWorker(part));
  return {
    wake() {
      for (const worker of workers) worker.wake();
    },
    async stop() {
      await starting;
      await Promise.all(workers.map((worker) => worker.stop()));
      await end();
    },
  };
}

export interface OrdersCarried {
  /** Rows by what became of them. */
  totals: Readonly<Outcomes>;
  /** True when a database or Stripe was down, so that rows wait for it. */
  isPaused: boolean;
}

/** Works until nothing is due any more. What needs a database that is away waits. */
export async function carryOrdersOnce(
  options: OrderCrewOptions,
  signal: AbortSignal,
): Promise<OrdersCarried> {
  const { parts, start, end } = openOrders(options);
  const totals: Outcomes = {};
  let isPaused = false;
  try {
    await start();
    for (const part of parts)
      try {
        const { outcomes, pausedUntilMs } = await part.drain(signal);
        for (const [outcome, count] of Object.entries(outcomes))
          totals[outcome] = (totals[outcome] ?? 0) + count;
        isPaused ||= pausedUntilMs > 0;
      } catch (cause) {
        if (!canWait(cause)) throw cause;
        // A cell that is away delays its own orders only.
        options.log.warn('paid orders wait: a database is away', { cause });
        isPaused = true;
      }
    return { totals, isPaused };
  } finally {
    await end();
  }
}

/** The courier alone, until nothing is due any more. An order that no cell knows is left to the workers, which wait for it. */
export async function settleOnce(options: FleetOptions & { db2Url: string; log: Log }): Promise<void> {
  const { courier, start, end } = openOrders({
    ...options,
    ...{ secretOf: () => undefined, urls: {}, metrics: NO_METRICS },
    courier: { unknownSec: Number.POSITIVE_INFINITY },
  });
  try {
    await start();
    await courier.drain(new AbortController().signal);
  } finally {
    await end();
  }
}

/** In the order in which one's work becomes another's. */
function openOrders(options: OrderCrewOptions) {
  const { db2Url, secretOf, urls, metrics, log, onFunded, leaseSec } = options;
  const open = (max: number) => createDatabase({ url: db2Url, max, applicationName: APPLICATION, log });
  const courierDatabase = open(COURIER_CONNECTIONS);
  const money = open(MONEY_CONNECTIONS);
  const ofSchema =
    (database: typeof money, schema: string): CallFunction =>
    (name, args) =>
      database.call(`${schema}.${name}`, args);
  const fleet = openWorkerFleet(cellsOf(options), APPLICATION, log, onFunded);
  const paymentsOf = openPayments(ofSchema(money, 'webhook'), secretOf, urls, log);
  const shared = { metrics, log, now: Date.now };
  const db2 = ofSchema(money, 'public');
  const closers = fleet.cells.map(
    ({ call: db1 }) => new Closer({ ...shared, db1, db2, paymentsOf }, leaseSec),
  );
  const courier = new Courier(
    {
      ...shared,
      db2: ofSchema(courierDatabase, 'public'),
      cells: orderCells(fleet),
      onFunded: (cell) => fleet.named(cell).wake(),
    },
    options.courier,
  );
  const refunder = new Refunder({ ...shared, db2, paymentsOf }, leaseSec);
  return {
    parts: [...closers, courier, refunder],
    courier,
    start: () => fleet.start(),
    async end() {
      await fleet.stop();
      await Promise.all([courierDatabase.end(), money.end(), ...fleet.cells.map((cell) => cell.end())]);
    },
  };
}
