// The three doors a buyer needs.

import type { PoolStatus } from '../../db1/supabase/functions/_shared/pool.ts';
import type { Claim } from './store.ts';

/** An answer of the server, or why there was none that counts. */
export type Answer<Value> =
  | { readonly kind: 'ok'; readonly value: Value; readonly sentAt: number | undefined }
  | { readonly kind: 'refused'; readonly code: string }
  /** No connection, no server, or one that says to come back: the same again can succeed. */
  | { readonly kind: 'trouble'; readonly retryAfterMs: number };

export interface Api {
  claim(pool: string, userId: string, requestId: string): Promise<Answer<Claim>>;
  getClaim(claimId: string): Promise<Answer<Claim>>;
  getPool(pool: string): Promise<Answer<PoolStatus>>;
}

/** Longer than the server takes for its worst answer, short enough that a dead connection is noticed. */
const TIMEOUT_MS = 20_000;

async function ask<Value>(path: string, init: RequestInit = {}): Promise<Answer<Value>> {
  try {
    const response = await fetch(path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const body = await response.json();
    const sentAt = Date.parse(response.headers.get('date') ?? '') || undefined;
    if (response.ok) return { kind: 'ok', value: body as Value, sentAt };
    if (response.status >= 500 || response.status === 429 || response.status === 408) {
      const retryAfterMs = (Number(response.headers.get('retry-after')) || 0) * 1_000;
      return { kind: 'trouble', retryAfterMs };
    }
    return { kind: 'refused', code: String(body?.error?.code ?? 'unknown') };
  } catch {
    // Offline, cut off half-way, too slow, or somebody else's page: nobody knows what became of the request.
    return { kind: 'trouble', retryAfterMs: 0 };
  }
}

export const api: Api = {
  claim: (pool, userId, requestId) =>
    ask(`/v1/pools/${pool}/claims`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user_id: userId, request_id: requestId }),
    }),
  getClaim: (claimId) => ask(`/v1/claims/${claimId}`, { cache: 'no-store' }),
  getPool: (pool) => ask(`/v1/pools/${pool}`),
};
