// A pool as buyers see it. A crowd reloads this page, so the database is asked at most once a second for each pool.

import { AnswerCache, KEPT_MS } from './answer_cache.ts';
import type { Clock } from './ports.ts';
import {
  cacheableHeaders,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  type Route,
  refuse,
} from './router.ts';

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
  /** With require_auth: anonymous sign-ins are enough. */
  readonly allow_guests: boolean;
  readonly max_per_address: number | null;
  readonly challenge_difficulty: number | null;
  /** The most slots that one request may take. */
  readonly max_quantity: number;
  /** `payment`: a claim is held until it is paid for. */
  readonly confirm_by: 'auto' | 'payment';
  /** Of one slot, in minor units of the currency. */
  readonly price: number | null;
  readonly currency: string | null;
  /** Null where none was ever set. */
  readonly details: PoolDetails | null;
}

/** What buyers read, as public.pool_details says. */
export interface PoolDetails {
  readonly title: string | null;
  readonly starts_at: string | null;
  /** An IANA name, in which starts_at is told; UTC where it is null. */
  readonly time_zone: string | null;
  readonly place: string | null;
  readonly picture_url: string | null;
  readonly text: string | null;
}

export interface PoolPorts {
  poolStatus(poolId: string): Promise<PoolStatus | undefined>;
  now: Clock;
}

const HEADERS = cacheableHeaders(KEPT_MS / 1_000);

export class PoolRoutes {
  readonly #pools: AnswerCache<PoolStatus | undefined>;

  constructor({ poolStatus, now }: PoolPorts) {
    this.#pools = new AnswerCache(poolStatus, now);
  }

  routes(): Route[] {
    return [{ method: 'GET', path: '/v1/pools/:pool', handle: (request, pool) => this.#show(request, pool) }];
  }

  async #show(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    const status = await this.status(poolId);
    return status === undefined
      ? refuse('unknown_pool', request.requestId)
      : jsonResponse(200, presented(status), HEADERS);
  }

  /** What the database said within the last second; undefined if the pool does not exist. */
  status(poolId: string): Promise<PoolStatus | undefined> {
    return this.#pools.get(poolId);
  }
}

/** How hard a challenge is stands in the challenge. */
function presented({ challenge_difficulty, ...status }: PoolStatus): Record<string, unknown> {
  return { ...status, challenge: challenge_difficulty !== null };
}
