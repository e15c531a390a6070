// Where the table is asked: a running Sluice on one of its runtimes, and all that a row has to know about it.

import type { Answer } from '../server/support.ts';

export type Runtime = 'node' | 'deno';

/** Signs the links of tickets; a comma would make two of it. */
export const TICKET_SECRET = 'secret-of-the-tickets-that-are-abused';

/** What the doors are asked about; made before the first row. */
export interface Things {
  /** With slots left. */
  readonly pool: string;
  /** Never asked for before the databases are stopped, so that no answer about it is remembered. */
  readonly unseenPool: string;
  readonly claimId: string;
  /** Held for a payment, with a session that is open. */
  readonly orderId: string;
  /** Of a ticket that is valid until it is checked. */
  readonly ticketToken: string;
  readonly letterId: number;
  readonly eventId: string;
}

export interface Place {
  readonly runtime: Runtime;
  readonly url: string;
  /** What the operators' doors take as a Bearer. */
  readonly operatorKey: string;
  /** Tokens that open no operator's door: a user's, one of another role, and one that has expired. */
  readonly otherTokens: readonly [string, string, string];
  /** By the names that endpoints and sites have for them. */
  readonly secrets: Readonly<Record<string, string>>;
  /** What no answer may hold. */
  readonly hidden: readonly string[];
  readonly things: Things;
  /** By their Postgres addresses; they change when a database is started again. */
  databaseUrls(): readonly [db1: string, db2: string];
  /** Whether the processes that answer are those that were started. */
  isAlive(): Promise<boolean>;
  /** Everything they have written to their logs. */
  logs(): string;
}

/** A request as it goes out. Header values in a list are sent as so many headers. */
export interface Wire {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

export type Asking = (place: Place, wire: Wire) => Promise<Answer>;

export const nowSec = (): number => Math.floor(Date.now() / 1_000);

let count = 0;
/** No two rows are about the same event or buyer, unless they say so. */
export const fresh = (): string => `abuse-${process.pid}-${++count}`;
