// Erases one user from all databases, in small transactions. Each database keeps where it stands, so that a program that was killed,
// or ran out of time, goes on when it is called again. Claims that are on their way: the ledger is told first, so that their tickets are
// written under the replacement whichever name a worker has in its hands; then the claim, its message and its slot change together.

import { isUnavailable, toHttpError } from '../failure.ts';
import { type UserDatabase, type UserPorts, type UserRequest, verifiedOf } from './databases.ts';

export interface Erasure {
  /** nothing: no database knew the user. working: the time was over; called again it goes on. */
  readonly status: 'erased' | 'nothing' | 'working';
  /** What stands in the place of the id; null where it stands nowhere. */
  readonly replacement: string | null;
  /** Rows changed, by database and table. */
  readonly changed: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** What it waited for when the time was over; null where that was nothing but time. */
  readonly waits_for: string | null;
}

interface Step {
  readonly place: string | null;
  readonly changed: number;
  readonly is_clean: boolean;
}

interface OpenClaim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly pool_id: string;
}

/** Rows that are looked at in one transaction: tens of milliseconds, also where all of them change. */
const ROWS_AT_ONCE = 500;
const CLAIMS_AT_ONCE = 200;
/** How long a row that another transaction or a worker has is left alone. */
const PAUSE_MS = 200;

/** Works for about `budgetMs`. */
export async function eraseUser(
  ports: UserPorts,
  request: UserRequest,
  budgetMs: number,
  onRows: (changed: number) => void = () => undefined,
): Promise<Erasure> {
  const run = new Run(ports, request, budgetMs, onRows);
  try {
    return await run.erase();
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    return { status: 'working', replacement: null, changed: {}, waits_for: error.waitsFor };
  }
}

class OutOfTime extends Error {
  readonly waitsFor: string | null;

  constructor(waitsFor: string | null) {
    super('out of time');
    this.waitsFor = waitsFor;
  }
}

class Run {
  readonly #ports: UserPorts;
  readonly #request: UserRequest;
  readonly #untilMs: number;
  readonly #onRows: (changed: number) => void;

  constructor(ports: UserPorts, request: UserRequest, budgetMs: number, onRows: (changed: number) => void) {
    this.#ports = ports;
    this.#request = request;
    this.#untilMs = ports.now() + budgetMs;
    this.#onRows = onRows;
  }

  async erase(): Promise<Erasure> {
    const { ledger, cells } = this.#ports;
    // Nothing begins where a cell is away.
    for (const cell of cells) await cell.call('intake_ready', {});
    const replacement = await this.#begin(ledger, null);
    for (const cell of cells) await this.#begin(cell, replacement);
    for (const cell of cells) await this.#clean(cell, () => this.#openClaims(cell));
    // After the cells: what they were about to carry to it has come.
    await this.#clean(ledger, () => Promise.resolve());
    const changed: Record<string, Record<string, number>> = {};
    // The ledger last: it knows the replacement until the others are done.
    for (const database of [...cells, ledger]) {
      const [row] = await this.#call<{ changed: Record<string, number> }>(database, 'finish_erasure', {});
      if (row !== undefined && Object.keys(row.changed).length > 0) changed[database.name] = row.changed;
    }
    const isKnown = Object.keys(changed).length > 0;
    return {
      status: isKnown ? 'erased' : 'nothing',
      replacement: isKnown ? replacement : null,
      changed,
      waits_for: null,
    };
  }

  async #begin(database: UserDatabase, replacement: string | null): Promise<string> {
    const { namespace, actor, reason } = this.#request;
    const [row] = await this.#call<{ begin_erasure: string }>(database, 'begin_erasure', {
      p_verified: verifiedOf(namespace),
      p_replacement: replacement,
      p_actor: actor,
      p_reason: reason,
    });
    if (row === undefined) throw new Error(`${database.name} has no erasure`);
    return row.begin_erasure;
  }

  /** Passes over all places until one finds nothing; `first` comes before each. */
  async #clean(database: UserDatabase, first: () => Promise<void>): Promise<void> {
    await first();
    for (;;) {
      const [step] = await this.#call<Step>(database, 'erase_step', { p_limit: ROWS_AT_ONCE });
      this.#onRows(step?.changed ?? 0);
      if (step?.is_clean !== false) return;
      if (step.place === null) await first();
    }
  }

  async #openClaims(cell: UserDatabase): Promise<void> {
    for (;;) {
      const p_limit = CLAIMS_AT_ONCE;
      const claims = await this.#call<OpenClaim>(cell, 'open_claims_of', { p_limit });
      if (claims.length === 0) return;
      await this.#call(this.#ports.ledger, 'erase_tickets', { p_claims: JSON.stringify(claims) });
      const p_claim_ids = claims.map(({ claim_id }) => claim_id);
      const [row] = await this.#call<{ erase_claims: number }>(cell, 'erase_claims', { p_claim_ids });
      this.#onRows(row?.erase_claims ?? 0);
      // A message that moves between the queue and the dead letters is there a moment later.
      if (row?.erase_claims === 0) await this.#wait('messages of the user that are moving');
    }
  }

  /** Waits for what others have; a call that was undone has changed nothing. */
  async #call<Row>(database: UserDatabase, name: string, args: Record<string, unknown>): Promise<Row[]> {
    for (;;) {
      if (this.#ports.now() > this.#untilMs) throw new OutOfTime(null);
      try {
        return await database.call<Row>(name, { p_user_id: this.#request.userId, ...args });
      } catch (error) {
        if (isUnavailable(error) || toHttpError(error).kind.code !== 'busy') throw error;
        await this.#wait(`${database.name}: ${error instanceof Error ? error.message : 'busy'}`);
      }
    }
  }

  async #wait(what: string): Promise<void> {
    if (this.#ports.now() + PAUSE_MS > this.#untilMs) throw new OutOfTime(what);
    await this.#ports.pause(PAUSE_MS);
  }
}
