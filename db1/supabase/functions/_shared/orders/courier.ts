// Carries what DB2 has to ask of DB1, and brings the answer back: what a payment is for (settle), and which tickets end (void). DB1's
// decision is made once and stored there, DB2's tombstones too, so a row that is carried twice changes nothing the second time.
// A settle gives, so DB1 goes first. A void takes away, so DB2 has the tombstone before DB1 frees the slot.
// Payments that buy what is held, which are nearly all, go together: one statement decides a batch, and one finishes it. What that leaves
// open is asked row by row: a late payment, a wrong one, an order that is in other hands or in another cell.

import type { CallFunction } from '../call_function.ts';
import { Coalescer } from '../coalescer.ts';
import {
  blameOf,
  canWait,
  codeOf,
  isUnavailable,
  mayBeOneMembers,
  mayPass,
  SQLSTATE,
  toHttpError,
} from '../failure.ts';
import { byHalves } from '../halving.ts';
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
  /** Of a settle, and of a void that a payment asks for. */
  readonly payment_key?: string;
  /** The order; null where the payment names none that could be one. */
  readonly claim_id?: string | null;
  /** Of a void that an operator asked for. */
  readonly claim_ids?: readonly string[];
  /** Why tickets end. */
  readonly cause?: string;
  readonly reason?: string | null;
}

/** A row of public.settle_payment, or of public.settle_payments, which names the payment too. */
interface Decision extends Readonly<Record<string, unknown>> {
  readonly decision: 'funds' | 'refund' | 'void' | 'ignored' | 'unknown';
  readonly payment_key?: string;
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
/** One is decided in DB1 while another is finished in DB2. */
const BATCHES_UNDER_WAY = 2;
/** A buyer who has paid waits for it. */
const IDLE_MS = 500;
const LEDGER = 'DB2';
const OUTAGE_PAUSE_SEC = 2;
const LONGEST_PAUSE_SEC = 60;

interface Finished {
  readonly row: OutboxRow;
  readonly result: Readonly<Record<string, unknown>>;
}

/** What public.outbox_finish_all says of a row, or why it could not. */
type Finish = { readonly outcome: string } | { readonly error: unknown };

/** A row of public.outbox_later_all. */
interface Late {
  readonly id: string;
  readonly token: string;
  readonly delay_sec: number;
  readonly error: string | null;
  readonly is_final: boolean;
}

/** A cell could not answer, or not yet: its rows wait, and no attempt is counted. */
class CellAway extends Error {
  override readonly name = 'CellAway';
}

export class Courier {
  readonly #ports: CourierPorts;
  readonly #lane: OrderLane<OutboxRow>;
  /** By cell: one that hangs keeps up its own orders only. */
  readonly #settles = new Map<string, Coalescer<Fact, Decision | undefined>>();
  readonly #finishes: Coalescer<Finished, Finish>;
  readonly #lates: Coalescer<Late, string>;
  readonly #unknownSec: number;

  constructor(ports: CourierPorts, { leaseSec = LEASE_SEC, unknownSec = UNKNOWN_SEC }: CourierOptions = {}) {
    const { db2, cells, now, metrics, log } = ports;
    this.#ports = ports;
    this.#unknownSec = unknownSec;
    this.#finishes = new Coalescer((finished) => this.#finishAll(finished));
    this.#lates = new Coalescer((late) => this.#putOff(late));
    this.#lane = new OrderLane<OutboxRow>({
      name: 'courier',
      targets: [LEDGER],
      batch: BATCH,
      underWay: BATCHES_UNDER_WAY * BATCH,
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
      const finish = await this.#finishes.submit({ row, result });
      if ('error' in finish) throw finish.error;
      breaker.succeeded();
      return finish.outcome === 'done' ? String(result.decision ?? 'voided') : finish.outcome;
    } catch (error) {
      if (error instanceof CellAway) return this.#later(row, 'outage', OUTAGE_PAUSE_SEC);
      if (isUnavailable(error)) {
        // DB2: the row cannot be put back either. Its lease runs out.
        breaker.outage();
        throw error;
      }
      if (canWait(error)) return this.#later(row, 'outage', OUTAGE_PAUSE_SEC);
      return this.#failed(row, error);
    }
  }

  /** Tried again, but for what no other try can end better. After ten tries DB2 makes it a dead letter by itself. */
  #failed(row: OutboxRow, error: unknown): Promise<string> {
    this.#ports.log.error('a payment or a void cannot be carried', { outbox_id: row.id, cause: error });
    const why = `${codeOf(error)} ${textOf(error)}`.trim();
    return this.#later(row, 'failed', Math.min(LONGEST_PAUSE_SEC, 2 ** row.attempts), why, isFinal(error));
  }

  /** What DB1 decided; undefined where no cell knows the order, and one may still come to know it. */
  async #settle(row: OutboxRow): Promise<Decision | undefined> {
    const cell = this.#ports.cells.likely(row.fact.claim_id ?? '');
    let settles = this.#settles.get(cell.name);
    if (settles === undefined) {
      settles = new Coalescer((facts) => this.#settleAll(cell, facts));
      this.#settles.set(cell.name, settles);
    }
    return (await settles.submit(row.fact)) ?? this.#settleAlone(row);
  }

  /** What the cell decides of these at once; undefined for one that has to be asked about by itself. */
  async #settleAll(cell: OrderCell, facts: readonly Fact[]): Promise<(Decision | undefined)[]> {
    const { cells, onFunded } = this.#ports;
    let rows: Decision[] = [];
    try {
      rows = await cell.call<Decision>('settle_payments', { p_facts: facts });
    } catch (error) {
      // With several cells the orders may be in another one, and whatever one of them met is not the others' trouble.
      if (cells.isOne && canWait(error) && !mayPass(error))
        throw new CellAway('DB1 cannot be asked', { cause: error });
      this.#ports.log.warn('payments are decided one by one', { cell: cell.name, cause: error });
    }
    if (rows.some(({ decision }) => decision === 'funds')) onFunded?.(cell.name);
    const decided = new Map(rows.map(({ payment_key, ...decision }) => [payment_key, decision]));
    return facts.map(({ payment_key }) => decided.get(payment_key));
  }

  async #settleAlone({ fact, created_at }: OutboxRow): Promise<Decision | undefined> {
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

  /** One that DB2 does not take spoils no other. */
  async #finishAll(finished: readonly Finished[]): Promise<Finish[]> {
    const finishes = new Map<Finished, Finish>();
    await byHalves(finished, {
      work: async (members) => {
        const rows = await this.#ports.db2<{ id: string; outcome: string }>('outbox_finish_all', {
          p_rows: members.map(({ row: { id, token }, result }) => ({ id, token, result })),
        });
        const outcomes = new Map(rows.map(({ id, outcome }) => [id, outcome]));
        for (const member of members)
          finishes.set(member, { outcome: outcomes.get(member.row.id) ?? 'lost_lease' });
      },
      mayBeOneMembers,
      fail: (members, error) => {
        for (const member of members) finishes.set(member, { error });
      },
    });
    return finished.map((one) => finishes.get(one) ?? { outcome: 'lost_lease' });
  }

  async #later(
    { id, token }: OutboxRow,
    outcome: string,
    delaySec: number,
    error: string | null = null,
    is_final = false,
  ): Promise<string> {
    const late = { id, token, delay_sec: Math.ceil(delaySec), error, is_final };
    return (await this.#lates.submit(late)) === 'dead_letter' ? 'dead_letter' : outcome;
  }

  async #putOff(late: readonly Late[]): Promise<string[]> {
    const rows = await this.#ports.db2<{ id: string; outcome: string }>('outbox_later_all', { p_rows: late });
    const outcomes = new Map(rows.map(({ id, outcome }) => [id, outcome]));
    return late.map(({ id }) => outcomes.get(id) ?? 'lost_lease');
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

/** True for what is wrong with the row itself, however often it is tried. */
function isFinal(error: unknown): boolean {
  const blame = blameOf(error);
  return codeOf(error) === SQLSTATE.invalidInput || blame === 'data' || blame === 'size';
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
