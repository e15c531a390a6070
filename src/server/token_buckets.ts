// Token buckets for a million networks in a fixed number of bytes. A table of sets, each of eight buckets, in one buffer: no
// object for a network, nothing to sweep. A network that finds its set full takes the place of the fullest bucket, which has the
// least to forget; the seed is random, so that no client can choose whose set it fills.

import { randomInt } from 'node:crypto';
import type { Clock } from '#core/ports.ts';
import type { Network } from './addresses.ts';

export interface Rate {
  /** Tokens in a full bucket. */
  readonly burst: number;
  /** Tokens that come back. */
  readonly perSec: number;
}

const WAYS = 8;
const WORDS_PER_BUCKET = 4;
const BYTES_PER_BUCKET = 16;
const MS_PER_SEC = 1_000;
const SEED_END = 2 ** 32;

export class TokenBuckets {
  /** Between two tokens. */
  readonly #intervalMs: number;
  readonly #burst: number;
  /** How far a bucket may run ahead of the clock: all but one of its tokens. */
  readonly #aheadMs: number;
  readonly #now: Clock;
  readonly #setMask: number;
  readonly #seeds = [randomInt(SEED_END), randomInt(SEED_END)] as const;
  /** Of each bucket: two words of key, then the time at which it is full, in milliseconds. Zeros are a full bucket. */
  readonly #keys: Uint32Array;
  readonly #fullAt: Float64Array;

  /** `networks` is a power of two, and at least eight. `now` never goes back. */
  constructor({ burst, perSec }: Rate, networks: number, now: Clock) {
    this.#intervalMs = MS_PER_SEC / perSec;
    this.#burst = burst;
    this.#aheadMs = (burst - 1) * this.#intervalMs;
    this.#now = now;
    this.#setMask = networks / WAYS - 1;
    const buffer = new ArrayBuffer(networks * BYTES_PER_BUCKET);
    this.#keys = new Uint32Array(buffer);
    this.#fullAt = new Float64Array(buffer);
  }

  /** All that the buckets will ever take. */
  get bytes(): number {
    return this.#keys.byteLength;
  }

  /** Takes so many tokens, all that a bucket holds at most: 0 where they were there, else the milliseconds until they are. */
  take(network: Network, tokens = 1): number {
    const now = this.#now();
    const beyondFirstMs = (Math.min(tokens, this.#burst) - 1) * this.#intervalMs;
    const bucket = this.#find(network);
    const isKnown = this.#isOf(bucket, network);
    const fullAt = isKnown ? this.#fullAtOf(bucket) : 0;
    const waitMs = fullAt - now - this.#aheadMs + beyondFirstMs;
    if (waitMs > 0) return waitMs;
    this.#keys[bucket * WORDS_PER_BUCKET] = network.high;
    this.#keys[bucket * WORDS_PER_BUCKET + 1] = network.low;
    this.#fullAt[bucket * 2 + 1] = Math.max(fullAt, now) + this.#intervalMs + beyondFirstMs;
    return 0;
  }

  /** As take(), without taking. */
  wait(network: Network): number {
    const bucket = this.#find(network);
    if (!this.#isOf(bucket, network)) return 0;
    return Math.max(0, this.#fullAtOf(bucket) - this.#now() - this.#aheadMs);
  }

  /** The bucket of the network, or of its set the one that is full first. */
  #find(network: Network): number {
    const first = (this.#hash(network) & this.#setMask) * WAYS;
    let fullest = first;
    for (let bucket = first; bucket < first + WAYS; bucket++) {
      if (this.#isOf(bucket, network)) return bucket;
      if (this.#fullAtOf(bucket) < this.#fullAtOf(fullest)) fullest = bucket;
    }
    return fullest;
  }

  #isOf(bucket: number, { high, low }: Network): boolean {
    const at = bucket * WORDS_PER_BUCKET;
    return this.#keys[at] === high && this.#keys[at + 1] === low;
  }

  #fullAtOf(bucket: number): number {
    return this.#fullAt[bucket * 2 + 1] as number;
  }

  /** Murmur's mixing of 32 bits, with the seeds. */
  #hash({ high, low }: Network): number {
    let hash = Math.imul(high ^ this.#seeds[0], 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 13) ^ low ^ this.#seeds[1], 0xc2b2_ae35);
    hash = Math.imul(hash ^ (hash >>> 15), 0x85eb_ca6b);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}
