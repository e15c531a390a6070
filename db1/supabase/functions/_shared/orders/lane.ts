// One kind of work with orders as a lane of the lease worker: rows are taken under leases, worked on beside each other, and each is
// finished by itself. While a target is down nothing is taken, and one row at a time asks whether it is back.

import { type Group, type Lane, LeaseWorker, type Outcomes, type Report } from '../lease_worker.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import { Targets } from '../target.ts';

export interface LaneOptions<Row> {
  readonly name: string;
  /** What every row needs: nothing is taken while one of them is down. */
  readonly targets: readonly string[];
  /** Rows of one take, and rows under way where that is left out. */
  readonly batch: number;
  readonly underWay?: number;
  /** After a take that found nothing. */
  readonly idleMs: number;
  take(limit: number): Promise<readonly Row[]>;
  /** Rows with different keys are worked on apart. */
  groupOf?(row: Row): string;
  /**
   * What became of the row, for the counts. After the signal it hands the row back. Throws only where the row cannot be finished:
   * its lease runs out, and it comes back.
   */
  work(row: Row, signal: AbortSignal): Promise<string>;
  readonly now: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** As long as a breaker waits at most: what an outage held up goes on that soon after it, however long it was. */
const OUTAGE_PAUSE_SEC = 15;

/** How long a row waits after an outage, which is not its doing; one that fails by itself must not keep others waiting. */
export function outagePauseSec(attempts: number): number {
  return Math.min(OUTAGE_PAUSE_SEC, 2 ** Math.min(attempts, 10));
}

/** Its rows have a lease of their own length and no heartbeat: each takes a few calls, and a second worker would do no harm. */
const NO_HEARTBEAT_MS = 60_000;

export class OrderLane<Row> {
  readonly targets: Targets;
  readonly #worker: LeaseWorker<Row>;
  readonly #options: LaneOptions<Row>;
  #idleUntilMs = 0;
  #isDraining = false;

  constructor(options: LaneOptions<Row>) {
    const { name, targets, batch, underWay = batch, now, metrics, log } = options;
    this.#options = options;
    this.targets = new Targets({
      now,
      limitOf: () => underWay,
      probesOf: () => 1,
      onChange: (target, isDown) => {
        metrics.count('sluice_order_breaker_open', { target }, isDown ? 1 : -1);
        if (isDown) log.warn(`${name}: ${target} is down`);
        else log.info(`${name}: ${target} answers again`);
      },
    });
    const lane: Lane = { id: name, targets, occupies: targets, most: batch };
    this.#worker = new LeaseWorker<Row>(
      {
        name,
        lanes: async () => (now() < this.#idleUntilMs ? [] : [lane]),
        take: ([want]) => this.#take(want?.wanted ?? 0),
        takeSuspect: async () => [],
        laneOf: () => name,
        ...(options.groupOf && { groupOf: (row: Row) => options.groupOf?.(row) ?? '' }),
        extend: () => Promise.resolve(),
        heartbeatMs: NO_HEARTBEAT_MS,
        work: (group, signal) => this.#work(group, signal),
      },
      { targets: this.targets, now, log },
    );
  }

  /** Until nothing is due any more. Throws when the rows cannot be read. */
  async drain(signal: AbortSignal): Promise<Report> {
    this.#idleUntilMs = 0;
    this.#isDraining = true;
    try {
      return await this.#worker.drain(signal);
    } finally {
      this.#isDraining = false;
    }
  }

  /** Until the signal aborts, and then hands back what it holds. */
  run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void> {
    return this.#worker.run(signal, onGroup);
  }

  wake(): void {
    this.#idleUntilMs = 0;
    this.#worker.wake();
  }

  async #take(wanted: number): Promise<readonly Row[]> {
    const { take, idleMs, now } = this.#options;
    const rows = await take(wanted);
    // A drain looks again when what it had under way has ended: that may be due once more.
    if (rows.length === 0 && !this.#isDraining) this.#idleUntilMs = now() + idleMs;
    return rows;
  }

  async #work({ items, finish }: Group<Row>, signal: AbortSignal): Promise<Outcomes> {
    const outcomes: Outcomes = {};
    const ends = await Promise.allSettled(
      items.map(async (row) => {
        const { work, name: lane, metrics } = this.#options;
        const outcome = await work(row, signal);
        metrics.count('sluice_order_work_total', { lane, outcome });
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        await finish([row], () => Promise.resolve());
      }),
    );
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return outcomes;
  }
}
