// Carries what DB2 has to ask of DB1, and brings the answer back: what a payment is for (settle), and which tickets end (void). DB1's
// decision is made once and stored there, DB2's tombstones too, so a row that is carried twice changes nothing the second time.
// A settle gives, so DB1 goes first. A void takes away, so DB2 has the tombstone before DB1 frees the slot.

import type { CallFunction } from '../call_function.ts';
import { Coalescer } from '../coalescer.ts';
import { canWait, codeOf, isUnavailable, toHttpError } from '../failure.ts';
import type { Outcomes, Report } from '../lease_worker.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import { textOf } from '../text.ts';
import { OrderLane } from './lane.ts';
import type { OrderCell, OrderCells } from './ports.ts';

/** A row of public.outbox_take. */
export interface OutboxRow {
  readonly id: string;
  readonly token: string;
  readonly kind: 'settle' | 'void';
  readonly fact: Fact;
  /** Failures, outages not among them. */
  readonly attempts: number;
  readonly created_at: string;
}

export interface Fact extends Readonly<Record<string, unknown>> {
  /** The order; null where the payment names none that could be one. */
  readonly claim_id?: string | null;
  /** Of a void that an operator asked for. */
  readonly claim_ids?: readonly string[];
  /** Why tickets end. */
  readonly cause?: string;
  readonly reason?: string | null;
}

/** A row of public.settle_payment. */
interface Decision extends Readonly<Record<string, unknown>> {
  readonly decision: 'funds' | 'refund' | 'void' | 'ignored' | 'unknown';
}

/** A row of public.void_targets, as far as we look at it. */
interface VoidTarget extends Readonly<Record<string, unknown>> {
  readonly claim_id: string;
}

interface Targets {
  readonly cell: OrderCell;
  readonly claims: readonly VoidTarget[];
}

export interface CourierPorts {
  /** Functions of schema public of DB2. */
  readonly db2: CallFunction;
  readonly cells: OrderCells;
  /** Told after claims were paid for, which workers can carry now. */
  readonly onFunded?: (cell: string) => void;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly now: Clock;
}

export interface CourierOptions {
  /** A row takes a few calls of milliseconds; this is how long one of a worker that died waits. */
  readonly leaseSec?: number;
  /** How long an order that no cell knows is waited for: a claim may be on its way from a primary that was lost. */
  readonly unknownSec?: number;
}

const LEASE_SEC = 30;
const UNKNOWN_SEC = 15 * 60;
const BATCH = 200;
/** A buyer who has paid waits for it. */
const IDLE_MS = 500;
const LEDGER = 'DB2';
const OUTAGE_PAUSE_SEC = 2;
const LONGEST_PAUSE_SEC = 60;

interface Finished {
  readonly row: OutboxRow;
  readonly result: Readonly<Record<string, unknown>>;
}

/** A cell could not answer, or not yet: its rows wait, and no attempt is counted. */
class CellAway extends Error {
  override readonly name = 'CellAway';
}

export class Courier {
  readonly #ports: CourierPorts;
  readonly #lane: OrderLane<OutboxRow>;
  readonly #finishes: Coalescer<Finished, string>;
  readonly #unknownSec: number;

  constructor(ports: CourierPorts, { leaseSec = LEASE_SEC, unknownSec = UNKNOWN_SEC }: CourierOptions = {}) {
    const { db2, cells, now, metrics, log } = ports;
    this.#ports = ports;
    this.#unknownSec = unknownSec;
    this.#finishes = new Coalescer((finished) => this.#finishAll(finished));
    this.#lane = new OrderLane<OutboxRow>({
      name: 'courier',
      targets: [LEDGER],
      batch: BATCH,
      idleMs: IDLE_MS,
      take: (limit) => db2<OutboxRow>('outbox_take', { p_limit: limit, p_lease_sec: leaseSec }),
      // A cell that hangs keeps up its own orders only.
      groupOf: ({ fact }) => cells.likely(fact.claim_id ?? '').name,
      work: (row, signal) => this.#carry(row, signal),
      now,
      metrics,
      log,
    });
  }

  /** Until nothing is due any more. Throws when DB2 cannot be read. */
  drain(signal: AbortSignal): Promise<Report> {
    return this.#lane.drain(signal);
  }

  run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void> {
    return this.#lane.run(signal, onGroup);
  }

  wake(): void {
    this.#lane.wake();
  }

  async #carry(row: OutboxRow, signal: AbortSignal): Promise<string> {
    if (signal.aborted) return this.#later(row, 'handed_back', 0);
    const { breaker } = this.#lane.targets.of(LEDGER);
    try {
      const result = await (row.kind === 'settle' ? this.#settle(row) : this.#void(row));
      if (result === undefined) return await this.#later(row, 'unknown', this.#growing(row));
      const outcome = await this.#finishes.submit({ row, result });
      breaker.succeeded();
      return outcome === 'done' ? String(result.decision ?? 'voided') : outcome;
    } catch (error) {
      if (error instanceof CellAway) return this.#later(row, 'outage', OUTAGE_PAUSE_SEC);
      if (isUnavailable(error)) {
        // DB2: the row cannot be put back either. Its lease runs out.
        breaker.outage();
        throw error;
      }
      if (canWait(error)) return this.#later(row, 'outage', OUTAGE_PAUSE_SEC);
      this.#ports.log.error('a payment or a void cannot be carried yet', { outbox_id: row.id, cause: error });
      const why = `${codeOf(error)} ${textOf(error)}`.trim();
      return this.#later(row, 'failed', Math.min(LONGEST_PAUSE_SEC, 2 ** row.attempts), why);
    }
  }

  /** What DB1 decided; undefined where no cell knows the order, and one may still come to know it. */
  async #settle({ fact, created_at }: OutboxRow): Promise<Decision | undefined> {
    const { cells, now, onFunded } = this.#ports;
    // The last cell that may still come to know the order, and what a cell said that has nothing to do with it.
    let unsure: OrderCell | undefined;
    let ignored: Decision | undefined;
    const ask = async (cell: OrderCell, isFinal: boolean): Promise<Decision | undefined> => {
      const [decided] = await cell.call<Decision>('settle_payment', { p_fact: fact, p_final: isFinal });
      if (decided?.decision === 'unknown') unsure = cell;
      else if (decided?.decision === 'ignored') ignored = decided;
      else if (decided?.decision === 'funds') onFunded?.(cell.name);
      return decided?.decision === 'unknown' || decided?.decision === 'ignored' ? undefined : decided;
    };
    const decided = await inCells(() => cells.onOrder(fact.claim_id ?? '', (cell) => ask(cell, false)));
    if (decided !== undefined || unsure === undefined) return decided ?? ignored;
    const isOld = now() - Date.parse(created_at) >= this.#unknownSec * 1_000;
    const last = unsure;
    return isOld ? inCells(() => ask(last, true)) : undefined;
  }

  async #void({ id, fact }: OutboxRow): Promise<Readonly<Record<string, unknown>>> {
    const { db2 } = this.#ports;
    const targets = await inCells(() => this.#targetsOf(fact));
    const claims = targets.flatMap((target) => target.claims);
    if (claims.length > 0) await db2('void_order_tickets', { p_outbox_id: id, p_claims: claims });
    for (const { cell, claims: own } of targets) {
      const p_claim_ids = own.map(({ claim_id }) => claim_id);
      const ended = await inCells(() => finishVoid(cell, p_claim_ids, reasonOf(fact)));
      // A message moved, or another session has a slot, in this very moment.
      if (ended < p_claim_ids.length) throw new CellAway('a claim that is void has not ended yet');
    }
    return { claim_ids: claims.map(({ claim_id }) => claim_id) };
  }

  /** The claims that end, each with its cell. */
  async #targetsOf(fact: Fact): Promise<Targets[]> {
    const { cells } = this.#ports;
    const ask = async (cell: OrderCell, args: Record<string, unknown>): Promise<Targets> => ({
      cell,
      claims: await cell.call<VoidTarget>('void_targets', { p_fact: null, p_claim_ids: null, ...args }),
    });
    if (fact.claim_ids !== undefined) {
      const found: Targets[] = [];
      for (const claimId of fact.claim_ids) {
        const target = await cells.onOrder(claimId, async (cell) => {
          const own = await ask(cell, { p_claim_ids: [claimId] });
          return own.claims.length === 0 ? undefined : own;
        });
        if (target !== undefined) found.push(target);
      }
      return found;
    }
    const orderId = fact.claim_id ?? '';
    // Asking notes that an undecided payment buys nothing: the cell that has the order is to note that, and no other.
    const own = await cells.onOrder(orderId, (cell) =>
      ask(cell, { p_fact: fact, p_final: false }).catch((error: unknown) => {
        if (toHttpError(error).kind.code === 'unknown_claim') return undefined;
        throw error;
      }),
    );
    return [own ?? (await ask(cells.likely(orderId), { p_fact: fact, p_final: true }))];
  }

  async #finishAll(finished: readonly Finished[]): Promise<string[]> {
    const rows = await this.#ports.db2<{ id: string; outcome: string }>('outbox_finish_all', {
      p_rows: finished.map(({ row: { id, token }, result }) => ({ id, token, result })),
    });
    const outcomes = new Map(rows.map(({ id, outcome }) => [id, outcome]));
    return finished.map(({ row }) => outcomes.get(row.id) ?? 'lost_lease');
  }

  async #later(
    row: OutboxRow,
    outcome: string,
    delaySec: number,
    error: string | null = null,
  ): Promise<string> {
    const { id: p_id, token: p_token } = row;
    await this.#ports.db2('outbox_later', {
      p_id,
      p_token,
      p_delay_sec: Math.ceil(delaySec),
      p_error: error,
    });
    return outcome;
  }

  /** An order that is not known: soon at first, then less often. */
  #growing({ created_at }: OutboxRow): number {
    const ageSec = (this.#ports.now() - Date.parse(created_at)) / 1_000;
    return Math.min(LONGEST_PAUSE_SEC, Math.max(1, ageSec / 4));
  }
}

/** A failure of DB1 is told from one of DB2 by where it happened. */
async function inCells<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (canWait(error)) throw new CellAway('a cell cannot be asked', { cause: error });
    throw error;
  }
}

/** How many of the claims have ended by now. */
async function finishVoid({ call }: OrderCell, p_claim_ids: string[], p_reason: string): Promise<number> {
  if (p_claim_ids.length === 0) return 0;
  const [row] = await call<{ finish_void: number }>('finish_void', { p_claim_ids, p_reason });
  return row?.finish_void ?? 0;
}

function reasonOf({ cause = 'void', reason }: Fact): string {
  return reason ? `${cause}: ${reason}` : cause;
}
