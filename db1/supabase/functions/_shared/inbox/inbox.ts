// The door's side of the inbox: where a verified delivery goes that DB2 cannot take, and where doors are looked up meanwhile.
// The cells are tried in their order, those that are known to be away last.

import { Breaker } from '../breaker.ts';
import { Coalescer } from '../coalescer.ts';
import { inTime } from '../deadline.ts';
import { HttpError } from '../errors.ts';
import { canWait, mayBeOneMembers } from '../failure.ts';
import type { Clock, Log, Metrics } from '../ports.ts';
import type { FindSecret } from '../webhook/secrets.ts';
import type { InboxMessage } from './message.ts';
import { KnownAway, Late, Reach } from './reach.ts';
import type { DoorKind, InboxCell } from './store.ts';

/** A look for an endpoint, a site or a secret in DB2; it takes a millisecond. */
const LOOK_UP_MS = 1_000;
/**
 * From the arrival of a delivery to the end of the try to record it in DB2. With the commit to a cell and its retry a sender that
 * waits for 15 s has its answer.
 */
const RECORD_MS = 3_000;
/** However long the looks before it took, the record itself gets this long. */
const LEAST_RECORD_MS = 500;
/** One try of one cell. */
const CELL_MS = 3_000;
/** As the recorder's: a statement of more than this holds up the deliveries behind it. */
const MAX_FLUSH_CHARS = 4 * 1024 * 1024;

export interface InboxPorts {
  readonly cells: readonly InboxCell[];
  /** The runtime's own, which is the fastest. */
  readonly toBase64: (bytes: Uint8Array) => string;
  readonly now: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

interface Cell extends InboxCell {
  readonly breaker: Breaker;
}

interface Waiting {
  readonly message: InboxMessage;
  readonly chars: number;
}

export class Inbox {
  readonly toBase64: InboxPorts['toBase64'];
  readonly #ports: InboxPorts;
  readonly #reach: Reach;
  readonly #cells: readonly Cell[];
  readonly #coalescer: Coalescer<Waiting, undefined>;
  /** Values of Vault that DB2 has told, by name: the names are those of endpoints and sites. */
  readonly #toldSecrets = new Map<string, string>();

  constructor(ports: InboxPorts) {
    const { log, now } = ports;
    this.#ports = ports;
    this.toBase64 = ports.toBase64;
    this.#reach = new Reach(now, (isAway) => {
      if (isAway) log.warn('DB2 is away: deliveries go to the inbox where on_outage is accept');
      else log.info('DB2 answers again');
    });
    this.#cells = ports.cells.map((cell) => ({ ...cell, breaker: new Breaker(now) }));
    this.#coalescer = new Coalescer<Waiting, undefined>((waiting) => this.#accept(waiting), {
      weigh: ({ chars }) => chars,
      maxWeight: MAX_FLUSH_CHARS,
      mayBeOneMembers,
    });
  }

  /** For shutdown: deliveries that it has are committed or refused, and it takes no new ones. */
  drain(): Promise<void> {
    return this.#coalescer.drain();
  }

  /** What DB2 has recorded; undefined where DB2 could not, and `message` is committed to a cell instead. */
  async record<Recorded>(
    arrivedMs: number,
    record: () => Promise<Recorded>,
    message: (receivedAt: string) => InboxMessage,
  ): Promise<Recorded | undefined> {
    const { now, metrics } = this.#ports;
    const leftMs = Math.max(LEAST_RECORD_MS, RECORD_MS - (now() - arrivedMs));
    try {
      return await this.#reach.try(leftMs, record);
    } catch (error) {
      if (!canWait(error)) throw error;
      const made = message(new Date(arrivedMs).toISOString());
      // Its size in base64 and JSON, about; the events of a body are smaller than the body.
      const chars = made.kind === 'event' ? 2 * made.body.length : 2 * made.call.payload.length;
      try {
        await this.#coalescer.submit({ message: made, chars });
      } catch (failure) {
        // No cell takes it. DB2 may have come back since it was last asked.
        if (error instanceof KnownAway && canWait(failure)) return record();
        throw failure;
      }
      metrics.count('sluice_inbox_accepted_total', { kind: made.kind });
      return undefined;
    }
  }

  /** What `ask` finds in DB2, or what the copy has where DB2 is away. */
  async findDoor<Door>(
    kind: DoorKind,
    name: string,
    ask: () => Promise<Door | undefined>,
  ): Promise<Door | undefined> {
    return this.#lookUp(ask, async (failure) => {
      const { door, read_at } = await this.#overCells((cell) => cell.copiedDoor<Door>(kind, name));
      if (read_at === null) throw new HttpError('database_unavailable');
      // It may be newer than the copy, and DB2 may only be slow: that is worth the wait.
      if (door === null && failure instanceof Late) return ask();
      return door ?? undefined;
    });
  }

  /**
   * As `find`, and what the copy has where DB2 is away: whether the name may be used, and if DB2's Vault has it, the value that DB2
   * told last, else that of a cell's own Vault.
   */
  findSecret(find: FindSecret): FindSecret {
    const ask = async (name: string) => {
      const found = await find(name);
      if (found.value === null) this.#toldSecrets.delete(name);
      else this.#toldSecrets.set(name, found.value);
      return found;
    };
    return (name) =>
      this.#lookUp(
        () => ask(name),
        async () => {
          const copied = await this.#overCells((cell) => cell.copiedSecret(name));
          const { is_allowed, in_vault, value, read_at } = copied;
          if (read_at === null) throw new HttpError('database_unavailable');
          const told = this.#toldSecrets.get(name);
          // Where DB2 told a value and the copy knows of none, one of the two is old: neither is believed.
          if (!in_vault) return { is_allowed, value: null, isCopy: true, inVault: told !== undefined };
          return { is_allowed, value: told ?? value, isCopy: true, inVault: true };
        },
      );
  }

  async #lookUp<Found>(
    ask: () => Promise<Found>,
    copied: (failure: unknown) => Promise<Found>,
  ): Promise<Found> {
    try {
      return await this.#reach.try(LOOK_UP_MS, ask);
    } catch (error) {
      if (!canWait(error)) throw error;
      return copied(error).catch((failure: unknown) => {
        // No cell has a copy. DB2 may have come back since it was last asked.
        if (error instanceof KnownAway && canWait(failure)) return ask();
        throw failure;
      });
    }
  }

  async #accept(waiting: readonly Waiting[]): Promise<undefined[]> {
    const messages = waiting.map(({ message }) => message);
    await this.#overCells((cell) => cell.accept(messages));
    return messages.map(() => undefined);
  }

  /** The first cell's answer; a cell that cannot answer now leaves it to the next. */
  async #overCells<Result>(work: (cell: InboxCell) => Promise<Result>): Promise<Result> {
    const isAway = ({ breaker }: Cell) => Number(breaker.openUntilMs > 0);
    let failure: unknown = new HttpError('database_unavailable');
    for (const cell of [...this.#cells].sort((one, other) => isAway(one) - isAway(other))) {
      try {
        const result = await inTime(CELL_MS, work(cell), () => new HttpError('database_unavailable'));
        cell.breaker.succeeded();
        return result;
      } catch (error) {
        if (!canWait(error)) throw error;
        cell.breaker.outage();
        failure = error;
        this.#ports.log.warn('a cell cannot take deliveries', { cell: cell.name, cause: error });
      }
    }
    throw failure;
  }
}
