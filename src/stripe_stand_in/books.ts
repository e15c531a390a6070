// The stand-in's own books: what was made, by kind, and its own clock. With a journal they outlive the process, so that a stand-in
// that was killed goes on with the sessions and the idempotency keys that it had.

import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type Stripe from 'stripe';
import type { ApiAnswer } from './api_server.ts';

/** As a delivery brings it. */
export type SentEvent = Pick<Stripe.EventBase, 'id' | 'created' | 'livemode'> & {
  type: string;
  account?: string;
  api_version?: string | null;
  data: { object: object };
};

export type ListedCharge = Pick<
  Stripe.Charge,
  | 'id'
  | 'object'
  | 'amount'
  | 'amount_captured'
  | 'amount_refunded'
  | 'currency'
  | 'created'
  | 'payment_intent'
  | 'status'
> &
  Partial<Pick<Stripe.Charge, 'captured' | 'disputed' | 'livemode' | 'metadata' | 'paid' | 'refunded'>>;

/** A session, and what Stripe keeps beside it until the payment is made. */
export interface StoredSession {
  readonly id: string;
  readonly created: number;
  readonly session: Stripe.Checkout.Session;
  /** `payment_intent_data.metadata`. */
  readonly intentMetadata: Stripe.Metadata;
  /** What the page calls it. */
  readonly title: string;
}

/** The answer that an idempotency key repeats. */
export interface SavedAnswer {
  /** The key. */
  readonly id: string;
  readonly created: number;
  readonly path: string;
  readonly body: string;
  readonly answer: ApiAnswer;
}

/** How far an event has come to the endpoint. */
export interface Delivery {
  /** The event's id. */
  readonly id: string;
  readonly created: number;
  readonly tries: number;
  readonly state: 'waiting' | 'delivered' | 'dropped' | 'given_up';
}

export type Dispute = Pick<
  Stripe.Dispute,
  'id' | 'object' | 'amount' | 'currency' | 'created' | 'status' | 'payment_intent' | 'charge' | 'livemode'
> & { balance_transactions: object[] };

interface Kinds {
  session: StoredSession;
  payment_intent: Stripe.PaymentIntent;
  charge: ListedCharge;
  refund: Stripe.Refund;
  dispute: Dispute;
  event: SentEvent;
  saved: SavedAnswer;
  delivery: Delivery;
}
export type Kind = keyof Kinds;

export class Books {
  readonly #journal: string | undefined;
  readonly #kept = new Map<string, Map<string, { account: string; object: Kinds[Kind] }>>();
  readonly #lines: string[] = [];
  #isTogether = false;
  /** How far the stand-in's clock is ahead of ours. */
  clockOffsetSec = 0;

  constructor(journal?: string) {
    this.#journal = journal;
    if (journal === undefined || !existsSync(journal)) return;
    const lines = readFileSync(journal, 'utf8').split('\n');
    // A last line without an end was cut by a kill: its request had no answer.
    for (const line of lines.slice(0, -1)) {
      const { kind, account, object } = JSON.parse(line);
      this.#ofKind(kind).set(object.id, { account, object });
    }
  }

  get nowSec(): number {
    return Math.floor(Date.now() / 1_000) + this.clockOffsetSec;
  }

  put<K extends Kind>(kind: K, object: Kinds[K], account = ''): void {
    this.#ofKind(kind).set(object.id, { account, object });
    if (this.#journal === undefined) return;
    this.#lines.push(`${JSON.stringify({ kind, account, object })}\n`);
    if (!this.#isTogether) this.#write();
  }

  /** What `work` puts is written at once, all of it or none. */
  together<Result>(work: () => Result): Result {
    this.#isTogether = true;
    try {
      return work();
    } finally {
      this.#isTogether = false;
      this.#write();
    }
  }

  find<K extends Kind>(kind: K, id: string): Kinds[K] | undefined {
    return this.#ofKind(kind).get(id)?.object as Kinds[K] | undefined;
  }

  /** Oldest first. */
  list<K extends Kind>(kind: K, account = ''): Kinds[K][] {
    const entries = [...this.#ofKind(kind).values()];
    return entries.filter((entry) => entry.account === account).map(({ object }) => object as Kinds[K]);
  }

  #write(): void {
    if (this.#journal === undefined || this.#lines.length === 0) return;
    appendFileSync(this.#journal, this.#lines.splice(0).join(''), { mode: 0o600 });
  }

  #ofKind(kind: string): Map<string, { account: string; object: Kinds[Kind] }> {
    const known = this.#kept.get(kind) ?? new Map();
    this.#kept.set(kind, known);
    return known;
  }
}

/** Letters and digits, as many as Stripe's ids have at least. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}
