// Endpoints by name, asked for once a second each: a delivery costs no query of its own, and an endpoint that is switched
// off stops within that second.

import type { Clock } from '../ports.ts';
import type { Endpoint } from './ports.ts';

const CACHE_MS = 1_000;
/** Names come from outside; without a bound, made-up ones would fill the memory. */
const MAX_CACHED = 1_000;

interface Cached {
  readonly endpoint: Promise<Endpoint | undefined>;
  /** Infinity while the database has not answered yet: one call in flight per name. */
  expiresAt: number;
}

export class EndpointCache {
  readonly #find: (name: string) => Promise<Endpoint | undefined>;
  readonly #now: Clock;
  readonly #cache = new Map<string, Cached>();

  constructor(find: (name: string) => Promise<Endpoint | undefined>, now: Clock) {
    this.#find = find;
    this.#now = now;
  }

  get(name: string): Promise<Endpoint | undefined> {
    const known = this.#cache.get(name);
    if (known !== undefined && this.#now() < known.expiresAt) return known.endpoint;
    return this.#ask(name);
  }

  async #ask(name: string): Promise<Endpoint | undefined> {
    // Deleted first, so that the order of the map is the order of asking and the first entry is the oldest.
    this.#cache.delete(name);
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined && this.#cache.size >= MAX_CACHED) this.#cache.delete(oldest);
    const entry: Cached = { endpoint: this.#find(name), expiresAt: Number.POSITIVE_INFINITY };
    this.#cache.set(name, entry);
    try {
      const endpoint = await entry.endpoint;
      entry.expiresAt = this.#now() + CACHE_MS;
      return endpoint;
    } catch (error) {
      // A failure is told to those who waited and then forgotten.
      if (this.#cache.get(name) === entry) this.#cache.delete(name);
      throw error;
    }
  }
}
