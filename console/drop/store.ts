// What this browser remembers: who the buyer is, and for each pool the one request it makes and the claim that came of it.

import { createRequest } from '../../packages/client/src/request.ts';

/** A claim as the claim door shows it. */
export interface Claim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly user_id: string;
  readonly status: string;
  readonly claimed_at: string;
  readonly hold_until: string | null;
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
  /** Asked for, and not answered yet. */
  readonly asked: boolean;
  readonly claim: Claim | null;
}

export type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem' | 'removeItem'>;

const BUYER_KEY = 'sluice.buyer';

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

  /** A name for a guest; undefined for a signed-in user, whose token says it. */
  buyer(): string | undefined {
    if (this.#userId() !== undefined) return undefined;
    const known = this.#storage.getItem(BUYER_KEY);
    if (known) return known;
    this.#storage.setItem(BUYER_KEY, `guest-${createRequest().requestId.slice(0, 12)}`);
    // Another tab may have been first; what is kept is who we are.
    return this.#storage.getItem(BUYER_KEY) ?? '';
  }

  /** Read at every use, never remembered: another tab may have moved on. */
  attempt(): Attempt {
    return this.#read() ?? this.renew();
  }

  change(change: Partial<Pick<Attempt, 'asked' | 'claim'>>): Attempt {
    return this.#write({ ...this.attempt(), ...change });
  }

  /** A new request, for when the last one has come to its end. */
  renew(): Attempt {
    const { requestId, secret } = createRequest();
    return this.#write({ request_id: requestId, secret, asked: false, claim: null });
  }

  #read(): Attempt | undefined {
    try {
      const { request_id, secret, asked, claim } = JSON.parse(this.#storage.getItem(this.key) ?? '');
      if (typeof request_id !== 'string' || typeof secret !== 'string') return undefined;
      return { request_id, secret, asked: asked === true, claim: claim ?? null };
    } catch {
      // Nothing there, or not ours.
      return undefined;
    }
  }

  #write(attempt: Attempt): Attempt {
    this.#storage.setItem(this.key, JSON.stringify(attempt));
    return this.#read() ?? attempt;
  }
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
