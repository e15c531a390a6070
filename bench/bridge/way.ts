// What every way of draining the queue has to offer, and what they share.

import type { Payload } from '#core/bridge/ports.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import type { World } from './world.ts';

export type Drain = {
  /** Loops, or jobs at a time. */
  clients: number;
  batch: number;
  /** The drain ends when the ledger has this many tickets and the queue none of the messages. */
  messages: number;
};

/** How long the drain took, and each of its pieces: a batch, or a job where there are no batches. */
export type Drained = { seconds: number; tookMs: number[] };

export type Way = {
  /** The schema its queue lives in. */
  schema: string;
  /** True when it also sets claims committed and slots CONSUMED, as the plain loop and our bridge do. */
  endsClaims: boolean;
  /** Stands in the row: how the other systems were set up. */
  settings(drain: Drain): string;
  /** Gives the messages of the intake queue to its own. */
  load?(world: World): Promise<void>;
  /** Connections are made before its clock starts, and have ended when it returns. */
  run(world: World, drain: Drain): Promise<Drained>;
};

const MS_PER_SEC = 1_000;
/** How many messages are given to another system's queue at a time. */
const LOAD_BATCH = 5_000;

/** A database with all its connections made. */
export async function connect(url: string, connections: number): Promise<Database> {
  const log = createLog('warn');
  const database = createDatabase({ url, max: connections, applicationName: 'sluice bench drain', log });
  await Promise.all(Array.from({ length: connections }, () => database.call('pg_catalog.now', {})));
  return database;
}

/** Moves the messages from the intake queue to another. */
export async function loadInBatches(
  world: World,
  add: (payloads: Payload[]) => Promise<unknown>,
): Promise<void> {
  const rows = await world.db1.rows<{ payloads: Payload }>('bench.payloads');
  for (let from = 0; from < rows.length; from += LOAD_BATCH)
    await add(rows.slice(from, from + LOAD_BATCH).map((row) => row.payloads));
  await world.db1.rows('bench.forget_messages');
}

/** Times pieces of work, each of which says how many messages it carried, from the first start to the last end. */
export class Stopwatch {
  readonly #tookMs: number[] = [];
  #firstMs = Infinity;
  #lastMs = 0;
  #carried = 0;

  get carried(): number {
    return this.#carried;
  }

  /** Work began before the first piece: counts from here. */
  begin(): void {
    this.#firstMs = Math.min(this.#firstMs, performance.now());
  }

  /** Work ended after the last piece: counts until here. */
  end(): void {
    this.#lastMs = performance.now();
  }

  /** A look at an empty queue is no work and leaves no trace. */
  async time(work: () => Promise<number>): Promise<number> {
    const startedMs = performance.now();
    const carried = await work();
    if (carried > 0) {
      this.#firstMs = Math.min(this.#firstMs, startedMs);
      this.#lastMs = performance.now();
      this.#tookMs.push(this.#lastMs - startedMs);
      this.#carried += carried;
    }
    return carried;
  }

  read(): Drained {
    return { seconds: (this.#lastMs - this.#firstMs) / MS_PER_SEC, tookMs: this.#tookMs };
  }
}

/** Loops side by side, each until it finds nothing: what is left then is in the other loops' hands. */
export async function runLoops(
  count: number,
  watch: Stopwatch,
  createWork: () => () => Promise<number>,
): Promise<void> {
  const loop = async (): Promise<void> => {
    const work = createWork();
    while ((await watch.time(work)) > 0);
  };
  await Promise.all(Array.from({ length: count }, loop));
}
