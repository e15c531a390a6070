// Draining a queue: how long it took, and each of its pieces.

import { createDatabase, type Database } from '../src/db/database.ts';
import { createLog } from '../src/log.ts';
import { quantile } from './stats.ts';

/** `tookMs` is of each piece: a batch, or a job where there are no batches. */
export type Drained = { seconds: number; tookMs: number[] };

const MS_PER_SEC = 1_000;

/** A database with all its connections made. */
export async function connect(url: string, connections: number): Promise<Database> {
  const log = createLog('warn');
  const database = createDatabase({ url, max: connections, applicationName: 'sluice bench drain', log });
  await Promise.all(Array.from({ length: connections }, () => database.call('pg_catalog.now', {})));
  return database;
}

export function timingOf({ seconds, tookMs }: Drained, ops: number) {
  const sorted = tookMs.sort((a, b) => a - b);
  return {
    ops,
    seconds,
    rate: ops / seconds,
    p50_ms: quantile(sorted, 0.5),
    p99_ms: quantile(sorted, 0.99),
  };
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

  /** A look at an empty queue is not counted. */
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
