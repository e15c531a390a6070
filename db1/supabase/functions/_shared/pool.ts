// A pool as buyers see it. A crowd reloads this page: each pool is asked for once a second, whoever asks.

import {
  cacheableHeaders,
  type DoorRequest,
  type DoorResponse,
  jsonResponse,
  type Route,
  refuse,
} from './door.ts';
import type { Clock } from './ports.ts';

/** A row of public.pool_status. */
export interface PoolStatus {
  readonly pool_id: string;
  readonly status: 'open' | 'not_open' | 'closed' | 'sold_out';
  readonly capacity: number;
  readonly available: number;
  readonly opens_at: string | null;
  readonly closes_at: string | null;
  readonly max_per_user: number | null;
  readonly hold_sec: number | null;
  readonly require_auth: boolean;
}

export interface PoolPorts {
  poolStatus(poolId: string): Promise<PoolStatus | undefined>;
  now: Clock;
}

const CACHE_MS = 1_000;
/** Pool ids come from outside; without a bound, made-up ones would fill the memory. */
const MAX_CACHED_POOLS = 1_000;
const HEADERS = cacheableHeaders(CACHE_MS / 1_000);

interface Cached {
  readonly status: Promise<PoolStatus | undefined>;
  /** Infinity while the database has not answered yet: one call in flight per pool. */
  expiresAt: number;
}

export class PoolDoor {
  readonly #ports: PoolPorts;
  readonly #cache = new Map<string, Cached>();

  constructor(ports: PoolPorts) {
    this.#ports = ports;
  }

  routes(): Route[] {
    return [{ method: 'GET', path: '/v1/pools/:pool', handle: (request, pool) => this.#show(request, pool) }];
  }

  async #show(request: DoorRequest, poolId: string): Promise<DoorResponse> {
    const status = await this.status(poolId);
    return status === undefined
      ? refuse('unknown_pool', request.requestId)
      : jsonResponse(200, status, HEADERS);
  }

  /** What the database said within the last second; undefined where there is no such pool. */
  status(poolId: string): Promise<PoolStatus | undefined> {
    const known = this.#cache.get(poolId);
    if (known !== undefined && this.#ports.now() < known.expiresAt) return known.status;
    return this.#ask(poolId);
  }

  async #ask(poolId: string): Promise<PoolStatus | undefined> {
    // Deleted first, so that the order of the map is the order of asking and the first entry is the oldest.
    this.#cache.delete(poolId);
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined && this.#cache.size >= MAX_CACHED_POOLS) this.#cache.delete(oldest);
    const entry: Cached = { status: this.#ports.poolStatus(poolId), expiresAt: Number.POSITIVE_INFINITY };
    this.#cache.set(poolId, entry);
    try {
      const status = await entry.status;
      entry.expiresAt = this.#ports.now() + CACHE_MS;
      return status;
    } catch (error) {
      // A failure is told to those who waited and then forgotten.
      if (this.#cache.get(poolId) === entry) this.#cache.delete(poolId);
      throw error;
    }
  }
}
