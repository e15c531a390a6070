// The doors a buyer needs.

import type { PoolStatus } from '../../db1/supabase/functions/_shared/pool.ts';
import type { Claim } from './store.ts';

/** An answer of the server, or why there was none that counts. */
export type Answer<Value> =
  | { readonly kind: 'ok'; readonly value: Value; readonly sentAt: number | undefined }
  /** Our own server said no, with one of the codes that this door has. */
  | { readonly kind: 'refused'; readonly code: string }
  /** No connection, no server, a server that says to come back, or an answer that is not Sluice's: a retry can succeed. */
  | { readonly kind: 'trouble'; readonly retryAfterMs: number };

export interface Asked {
  readonly request_id: string;
  readonly secret: string;
  /** Left out where a token says it. */
  readonly user_id?: string;
  /** Left out for one. */
  readonly quantity?: number;
  /** The solution, where the pool asks for one. */
  readonly challenge?: string;
}

export interface Api {
  claim(pool: string, asked: Asked): Promise<Answer<Claim>>;
  getClaim(claimId: string, secret: string): Promise<Answer<Claim>>;
  release(claimId: string, secret: string): Promise<Answer<Claim>>;
  /** Where to pay for the order of the claim. */
  checkout(claimId: string, secret: string): Promise<Answer<{ readonly url: string }>>;
  getPool(pool: string): Promise<Answer<PoolStatus>>;
  /** Null where the pool asks for none. */
  getChallenge(pool: string): Promise<Answer<unknown>>;
  /** Null where the operator has set none. */
  getLogin(): Promise<Answer<{ readonly login_url: string | null }>>;
}

/** Longer than the server takes for its worst answer, short enough that a dead connection is noticed. */
const TIMEOUT_MS = 20_000;

const CLAIM_REFUSALS = [
  'sold_out',
  'not_enough',
  'quantity_refused',
  'secret_required',
  'closed',
  'limit',
  'unknown_pool',
  'auth_required',
  'guests_refused',
  'challenge_required',
  'challenge_used',
  'address_limit',
  'claim_ended',
  'invalid_input',
];
const RELEASE_REFUSALS = ['already_committed', 'dead_letter', 'paid', 'not_yours', 'unknown_claim'];
const CHECKOUT_REFUSALS = ['hold_over', 'paid', 'not_for_payment', 'unknown_claim', 'not_yours'];
/** The only answer that says a claim is not there. */
export const CLAIM_IS_GONE = 'unknown_claim';
const POOL_IS_NONE = ['unknown_pool', 'invalid_input', 'not_found'];

/** `codes` are the refusals that count: a proxy's 403 says nothing about what became of a purchase. */
async function ask<Value>(
  path: string,
  codes: readonly string[],
  init: RequestInit = {},
): Promise<Answer<Value>> {
  try {
    const response = await fetch(path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const body = await response.json();
    const sentAt = Date.parse(response.headers.get('date') ?? '') || undefined;
    if (response.ok) return { kind: 'ok', value: body as Value, sentAt };
    const code = body?.error?.code;
    if (response.status < 500 && codes.includes(code)) return { kind: 'refused', code };
    return { kind: 'trouble', retryAfterMs: (Number(response.headers.get('retry-after')) || 0) * 1_000 };
  } catch {
    // Offline, cut off half-way, too slow, or a page that is not Sluice's: what became of the request is unknown.
    return { kind: 'trouble', retryAfterMs: 0 };
  }
}

/** An answer without the fields of a claim is not Sluice's: it counts as trouble. */
async function askForClaim(
  path: string,
  codes: readonly string[],
  init: RequestInit,
): Promise<Answer<Claim>> {
  const answer = await ask<Partial<Claim>>(path, codes, init);
  if (answer.kind !== 'ok') return answer;
  const { claim_id, resource_id, status } = answer.value ?? {};
  return claim_id && resource_id && status
    ? { ...answer, value: answer.value as Claim }
    : { kind: 'trouble', retryAfterMs: 0 };
}

/** `token` is that of who is signed in now. */
export function createApi(token: () => string | undefined): Api {
  const headers = (more: Record<string, string> = {}): Record<string, string> => {
    const bearer = token();
    return { ...more, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
  };
  const claimWith = (secret: string) => ({
    cache: 'no-store' as const,
    headers: headers({ 'x-claim-secret': secret }),
  });
  const poolPath = (pool: string) => `/v1/pools/${encodeURIComponent(pool)}`;
  return {
    claim: (pool, asked) =>
      askForClaim(`${poolPath(pool)}/claims`, CLAIM_REFUSALS, {
        method: 'POST',
        headers: headers({ 'content-type': 'application/json' }),
        body: JSON.stringify(asked),
      }),
    getClaim: (claimId, secret) => askForClaim(`/v1/claims/${claimId}`, [CLAIM_IS_GONE], claimWith(secret)),
    release: (claimId, secret) =>
      askForClaim(`/v1/claims/${claimId}`, RELEASE_REFUSALS, { method: 'DELETE', ...claimWith(secret) }),
    checkout: (claimId, secret) =>
      ask(`/v1/claims/${claimId}/checkout`, CHECKOUT_REFUSALS, { method: 'POST', ...claimWith(secret) }),
    getPool: (pool) => ask(poolPath(pool), POOL_IS_NONE),
    getChallenge: (pool) => ask(`${poolPath(pool)}/challenge`, POOL_IS_NONE, { cache: 'no-store' }),
    getLogin: () => ask('/v1/login', []),
  };
}
