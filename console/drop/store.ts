// What this browser remembers: who the buyer is, and for each pool the one request it makes and the claim that came of it.

import { createRequest } from '../../packages/client/src/request.ts';

export interface Seat {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly label: string | null;
  readonly state: string;
  readonly ticket_url?: string;
}

/** What holds the seats of one request together: of several seats, or of a pool that is paid for. */
export interface Order {
  readonly order_id: string;
  /** Null where nothing is paid for it. */
  readonly status: string | null;
  /** In minor units of the currency; null where nothing is paid for it. */
  readonly amount: number | null;
  readonly currency: string | null;
  readonly seats: number;
  readonly hold_until: string | null;
  readonly claims: readonly Seat[];
}

/** A claim as the claim door shows it. */
export interface Claim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly user_id: string;
  readonly status: string;
  readonly claimed_at: string;
  readonly hold_until: string | null;
  /** Once it is a ticket. */
  readonly ticket_url?: string;
  /** What the seat is called, as the first look tells. */
  readonly label?: string | null;
  /** Known from the first look on. */
  readonly order?: Order;
  /** It is given back as soon as the ledger knows, unless the ledger has made it a ticket already. */
  readonly ending?: boolean;
  /** About how many are carried to the ledger before it. Never kept: it is another number in a moment. */
  readonly ahead?: number | null;
}

/**
 * One attempt at a seat. Its id and its secret are made before anything is asked and kept, so that a double click, a reload,
 * another tab and a lost connection all ask for the same claim, and so that the claim stays this browser's.
 */
export interface Attempt {
  readonly request_id: string;
  /** What the claim is read and given back with. */
  readonly secret: string;
  /** How many seats: of the request, so that the same request again asks for as many. */
  readonly quantity: number;
  /** Asked for, and not answered yet. */
  readonly asked: boolean;
  /** The person was sent to pay: money may come, whatever has become of the seat. */
  readonly sentToPay: boolean;
  readonly claim: Claim | null;
}

export type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>;

const BUYER_KEY = 'sluice.buyer';
/** Attempts that the person has left for another one, and may come back to from the payment page. */
const MAX_PAST = 10;

export class Store {
  readonly #storage: Storage;
  readonly #pool: string;
  readonly #userId: () => string | undefined;

  /** `userId`: who is signed in now. Each has attempts of their own, and so has a guest. */
  constructor(storage: Storage, pool: string, userId: () => string | undefined) {
    this.#storage = storage;
    this.#pool = pool;
    this.#userId = userId;
  }

  get key(): string {
    const userId = this.#userId();
    return userId === undefined
      ? `sluice.drop.${this.#pool}`
      : `sluice.drop@${encodeURIComponent(userId)}/${this.#pool}`;
  }

  get #pastKey(): string {
    return this.key.replace(/^sluice\.drop/, 'sluice.past');
  }

  /** A name for a guest; undefined for a signed-in user, whose token says it. */
  buyer(): string | undefined {
    if (this.#userId() !== undefined) return undefined;
    const known = this.#storage.getItem(BUYER_KEY);
    if (known) return known;
    this.#storage.setItem(BUYER_KEY, `guest-${createRequest().requestId.slice(0, 12)}`);
    // Another tab may have been first: the stored id is ours.
    return this.#storage.getItem(BUYER_KEY) ?? '';
  }

  /** Read at every use, never remembered: another tab may have moved on. */
  attempt(): Attempt {
    return this.#read() ?? this.renew();
  }

  change(change: Partial<Pick<Attempt, 'asked' | 'claim' | 'quantity' | 'sentToPay'>>): Attempt {
    return this.#write({ ...this.attempt(), ...change });
  }

  /** A new request, for when the last one has come to its end. */
  renew(): Attempt {
    this.#keepPast(this.#read());
    const { requestId, secret } = createRequest();
    return this.#write({
      request_id: requestId,
      secret,
      quantity: 1,
      asked: false,
      sentToPay: false,
      claim: null,
    });
  }

  /** Back to an attempt that was left; false where this browser does not know the claim. */
  returnTo(claimId: string): boolean {
    const now = this.attempt();
    if (now.claim?.claim_id === claimId) return true;
    const found = this.#past().find(({ claim }) => claim?.claim_id === claimId);
    if (found === undefined) return false;
    this.#keepPast(now);
    this.#write(found);
    return true;
  }

  /** Keeps an attempt only if its buyer was sent to pay, because money may still come. */
  #keepPast(left: Attempt | undefined): void {
    if (left === undefined || !left.sentToPay) return;
    const others = this.#past().filter(({ request_id }) => request_id !== left.request_id);
    this.#storage.setItem(this.#pastKey, JSON.stringify([left, ...others].slice(0, MAX_PAST)));
  }

  #past(): Attempt[] {
    const past = parsed(this.#storage.getItem(this.#pastKey));
    return Array.isArray(past) ? past.flatMap((one) => attemptOf(one) ?? []) : [];
  }

  #read(): Attempt | undefined {
    return attemptOf(parsed(this.#storage.getItem(this.key)));
  }

  #write(attempt: Attempt): Attempt {
    this.#storage.setItem(this.key, JSON.stringify(attempt));
    return this.#read() ?? attempt;
  }
}

/** Undefined where nothing is there, or what is there is not ours. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}

function attemptOf(kept: unknown): Attempt | undefined {
  const { request_id, secret, quantity, asked, sentToPay, claim } = (kept ?? {}) as Partial<Attempt>;
  if (typeof request_id !== 'string' || typeof secret !== 'string') return undefined;
  return {
    request_id,
    secret,
    quantity: typeof quantity === 'number' ? quantity : 1,
    asked: asked === true,
    sentToPay: sentToPay === true,
    claim: claim ?? null,
  };
}

/** The browser's own, or, where the person forbids it, one that lasts as long as the page. */
export function openStorage(name: 'localStorage' | 'sessionStorage'): Storage {
  try {
    const storage = window[name];
    storage.setItem('sluice.probe', '1');
    storage.removeItem('sluice.probe');
    return storage;
  } catch {
    const kept = new Map<string, string>();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
      removeItem: (key) => void kept.delete(key),
    };
  }
}
