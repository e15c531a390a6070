// What this browser remembers: who the buyer is, and for each pool the one request it makes and the claim that came of it.

/** A claim as the claim door shows it. */
export interface Claim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly user_id: string;
  readonly status: string;
  readonly claimed_at: string;
  readonly hold_until: string | null;
  /** About how many are carried to the ledger before it. Never kept: it is another number in a moment. */
  readonly ahead?: number | null;
}

/**
 * One attempt at a seat. Its id is made before anything is asked and kept, so that a double click, a reload, another tab and a
 * lost connection all ask for the same claim.
 */
export interface Attempt {
  readonly request_id: string;
  /** Asked for, and not answered yet. */
  readonly asked: boolean;
  readonly claim: Claim | null;
}

export type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem'>;

const BUYER_KEY = 'sluice.buyer';
const ID_BYTES = 16;

export class Store {
  readonly #storage: Storage;
  readonly #key: string;

  constructor(storage: Storage, pool: string) {
    this.#storage = storage;
    this.#key = `sluice.drop.${pool}`;
  }

  get key(): string {
    return this.#key;
  }

  buyer(): string {
    const known = this.#storage.getItem(BUYER_KEY);
    if (known) return known;
    this.#storage.setItem(BUYER_KEY, `guest-${randomId().slice(0, 12)}`);
    // Another tab may have been first; what is kept is who we are.
    return this.#storage.getItem(BUYER_KEY) ?? '';
  }

  /** Read at every use, never remembered: another tab may have moved on. */
  attempt(): Attempt {
    return this.#read() ?? this.renew();
  }

  change(change: Partial<Omit<Attempt, 'request_id'>>): Attempt {
    return this.#write({ ...this.attempt(), ...change });
  }

  /** A new request, for when the last one has come to its end. */
  renew(): Attempt {
    return this.#write({ request_id: randomId(), asked: false, claim: null });
  }

  #read(): Attempt | undefined {
    try {
      const { request_id, asked, claim } = JSON.parse(this.#storage.getItem(this.#key) ?? '');
      if (typeof request_id !== 'string') return undefined;
      return { request_id, asked: asked === true, claim: claim ?? null };
    } catch {
      // Nothing there, or not ours.
      return undefined;
    }
  }

  #write(attempt: Attempt): Attempt {
    this.#storage.setItem(this.#key, JSON.stringify(attempt));
    return this.#read() ?? attempt;
  }
}

/** The browser's own, or, where the person forbids it, one that lasts as long as the page. */
export function openStorage(): Storage {
  try {
    const { localStorage } = window;
    localStorage.setItem('sluice.probe', '1');
    localStorage.removeItem('sluice.probe');
    return localStorage;
  } catch {
    const kept = new Map<string, string>();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
    };
  }
}

/** Not randomUUID: that one is missing where a phone opens the page over plain http. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(ID_BYTES)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
