// Solves the server's own challenge: the proof of work of ALTCHA (version 2, SHA-256, one round). Web globals only.
//
// The hash is our own: `crypto.subtle` gives each small hash through a promise, many times slower (16,000 a second beside
// 230,000 on a busy machine), and is missing in a page over plain http. What takes a person's device a second should cost a robot
// as much of a second as it can.

/** As `GET /v1/pools/:pool/challenge` answers, where the server checks proofs of work. */
interface Challenge {
  readonly parameters: {
    readonly algorithm: 'SHA-256';
    readonly cost: 1;
    readonly keyLength: 32;
    readonly nonce: string;
    readonly salt: string;
    readonly keyPrefix: string;
    /** The number is somewhere from 0 to this. */
    readonly data: { readonly difficulty: number };
  };
  readonly signature: string;
}

export interface SolveOptions {
  /** Ends the search; the promise rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** From 0 to 1: how much of all that may have to be tried was tried. The search may end at any of them. */
  readonly onProgress?: ((share: number) => void) | undefined;
}

/** For how long a page is not served while numbers are tried. */
const SLICE_MS = 12;
/** Between two looks at the clock. */
const TRIES_A_LOOK = 1_000;
const BYTES_16 = /^[0-9a-f]{32}$/;

/** What a claim sends as `challenge`. Undefined where it is a challenge of another kind, which this cannot solve. */
export async function solveChallenge(
  challenge: unknown,
  { signal, onProgress }: SolveOptions = {},
): Promise<string | undefined> {
  if (!isOurs(challenge)) return undefined;
  const { salt, nonce, keyPrefix, data } = challenge.parameters;
  const search = new Search(salt + nonce, keyPrefix);
  const startedMs = Date.now();
  for (let counter = 0; counter <= data.difficulty; ) {
    signal?.throwIfAborted();
    onProgress?.(counter / data.difficulty);
    for (const untilMs = Date.now() + SLICE_MS; Date.now() < untilMs && counter <= data.difficulty; ) {
      const end = Math.min(counter + TRIES_A_LOOK, data.difficulty + 1);
      for (; counter < end; counter++) {
        const derivedKey = search.try(counter);
        if (derivedKey === undefined) continue;
        const solution = { counter, derivedKey, time: Date.now() - startedMs };
        return btoa(JSON.stringify({ challenge, solution }));
      }
    }
    await breathe();
  }
  return undefined;
}

function isOurs(challenge: unknown): challenge is Challenge {
  const { parameters, signature } = (challenge ?? {}) as Partial<Challenge>;
  if (typeof signature !== 'string') return false;
  const { algorithm, cost, keyLength, nonce, salt, keyPrefix, data } = (parameters ?? {}) as Partial<
    Challenge['parameters']
  >;
  return (
    algorithm === 'SHA-256' &&
    cost === 1 &&
    keyLength === 32 &&
    [nonce, salt, keyPrefix].every((text) => BYTES_16.test(text ?? '')) &&
    Number.isInteger(data?.difficulty)
  );
}

/** Lets everything else run. Not a timer: browsers hold those of a hidden tab back for a second. */
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/** Salt, nonce and number are 36 bytes: one block of SHA-256. */
class Search {
  readonly #words = new Int32Array(64);
  readonly #hash = new Int32Array(8);
  readonly #prefix: string;
  readonly #firstWord: number;

  constructor(saltAndNonce: string, prefix: string) {
    for (let word = 0; word < 8; word++)
      this.#words[word] = Number.parseInt(saltAndNonce.slice(word * 8, word * 8 + 8), 16);
    this.#words[9] = 0x80000000;
    this.#words[15] = 36 * 8;
    this.#prefix = prefix;
    this.#firstWord = Number.parseInt(prefix.slice(0, 8), 16) | 0;
  }

  /** The whole key where it begins with the prefix. */
  try(counter: number): string | undefined {
    this.#words[8] = counter;
    hashBlock(this.#words, this.#hash);
    if (this.#hash[0] !== this.#firstWord) return undefined;
    const key = Array.from(this.#hash, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
    return key.startsWith(this.#prefix) ? key : undefined;
  }
}

const PRIMES: number[] = [];
for (let number = 2; PRIMES.length < 64; number++)
  if (PRIMES.every((prime) => number % prime !== 0)) PRIMES.push(number);

/** The first 32 bits after the point of the roots of primes, as FIPS 180-4 has them. */
const fractions = (roots: number[]): Int32Array => Int32Array.from(roots, (root) => (root % 1) * 2 ** 32);
const ROUND = fractions(PRIMES.map(Math.cbrt));
const START = fractions(PRIMES.slice(0, 8).map(Math.sqrt));

/**
 * FIPS 180-4, 6.2.2, of a message of one block. `words` begins with the block; the rest of them is worked out here. Written out
 * and without arrays of its own: it runs a million times a second.
 */
function hashBlock(words: Int32Array, hash: Int32Array): void {
  for (let t = 16; t < 64; t++) {
    const x = words[t - 15] as number;
    const y = words[t - 2] as number;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[t] = (words[t - 16] as number) + s0 + (words[t - 7] as number) + s1;
  }
  hash.set(START);
  let a = hash[0] as number;
  let b = hash[1] as number;
  let c = hash[2] as number;
  let d = hash[3] as number;
  let e = hash[4] as number;
  let f = hash[5] as number;
  let g = hash[6] as number;
  let h = hash[7] as number;
  for (let t = 0; t < 64; t++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUND[t] as number) + (words[t] as number)) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + s0 + ((b & c) ^ (b & d) ^ (c & d))) | 0;
  }
  hash[0] = (hash[0] as number) + a;
  hash[1] = (hash[1] as number) + b;
  hash[2] = (hash[2] as number) + c;
  hash[3] = (hash[3] as number) + d;
  hash[4] = (hash[4] as number) + e;
  hash[5] = (hash[5] as number) + f;
  hash[6] = (hash[6] as number) + g;
  hash[7] = (hash[7] as number) + h;
}
