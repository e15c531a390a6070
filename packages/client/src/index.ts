// A client for buyers, for browsers, Node, Deno and Bun: Web globals only.
//
//   const sluice = createSluiceClient({ url: 'https://tickets.example.com' });
//   const claim = await sluice.claim({ pool: 'opening_night', userId: 'ann' });

import { type AskOptions, ask, open } from './ask.ts';
import { SluiceError, type SluiceErrorCode } from './error.ts';
import { readEvents, type StreamEvent } from './event_stream.ts';
import { pauseMs, type RetryOptions, sleep } from './retry.ts';

export { SluiceError, type SluiceErrorCode };

/**
 * `queued` and `validated`: on its way. `committed`: it is a ticket. `dead_letter`: an operator decides. The other four have
 * given the slot back.
 */
export type ClaimStatus =
  | 'queued'
  | 'validated'
  | 'committed'
  | 'dead_letter'
  | 'released'
  | 'expired'
  | 'refused'
  | 'discarded';

export interface Claim {
  readonly claim_id: string;
  /** The slot. */
  readonly resource_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly request_id: string | null;
  readonly status: ClaimStatus;
  readonly claimed_at: string;
  readonly hold_until: string | null;
  /** Once it has ended without a ticket. */
  readonly ended_at?: string | null;
  readonly end_reason?: string | null;
  /** About how many claims, of all pools, become tickets before this one, as `getClaim` tells; null: not on the queue. */
  readonly ahead?: number | null;
  /** It ends as soon as the ledger knows and holds its slot until then; or it turns out to be a ticket. */
  readonly ending?: boolean;
}

export interface Pool {
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

/** All but `now` is null while the server's database does not answer. */
export interface PoolNews {
  readonly status: Pool['status'] | null;
  readonly available: number | null;
  readonly capacity: number | null;
  readonly opens_at: string | null;
  /** The server's clock, for a countdown. */
  readonly now: string;
}

export interface ClaimOrder {
  readonly pool: string;
  /** May be left out with a user's token. */
  readonly userId?: string;
  /**
   * The same id in the same pool gives the same claim, whoever asks how often. Made here where left out, and then the same
   * for all tries of this call; keep one of your own where a person may press again or come back after a reload.
   */
  readonly requestId?: string;
}

export interface CallOptions {
  /** Ends the call, pauses included. A claim that was on its way may have been made: ask again with its request id. */
  readonly signal?: AbortSignal;
}

export interface SluiceClientOptions extends Partial<RetryOptions> {
  /** Where the server is. */
  readonly url: string;
  /** A user's token, sent as Bearer. */
  readonly token?: string;
  /** For one try; a try that takes longer is made again. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

export interface SluiceClient {
  /**
   * Takes one slot. Tries again after lost connections, timeouts and answers that say so, always with one request id: one
   * slot at most. Throws a SluiceError for what trying again does not change: sold_out, limit, closed, …
   */
  claim(order: ClaimOrder, options?: CallOptions): Promise<Claim>;
  getClaim(claimId: string, options?: CallOptions): Promise<Claim>;
  /** Gives the slot back. A second call gives the same answer. `ending`: a worker has the claim; `getClaim` tells how it ends. */
  release(claimId: string, options?: CallOptions): Promise<Claim>;
  /** Up to a second old. */
  pool(poolId: string, options?: CallOptions): Promise<Pool>;
  /** What is left, as it changes; connects again by itself. Ends when the signal is aborted. */
  follow(poolId: string, options?: CallOptions): AsyncGenerator<PoolNews, void, undefined>;
}

const TIMEOUT_MS = 10_000;
const MAX_TRIES = 6;

export function createSluiceClient(options: SluiceClientOptions): SluiceClient {
  const ways: AskOptions = {
    url: options.url.replace(/\/+$/, ''),
    headers: options.token ? { authorization: `Bearer ${options.token}` } : {},
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    maxTries: options.maxTries ?? MAX_TRIES,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? sleep,
    fetch: options.fetch ?? ((...call) => fetch(...call)),
  };
  return {
    claim({ pool, userId, requestId = crypto.randomUUID() }, { signal } = {}) {
      const path = `/v1/pools/${encodeURIComponent(pool)}/claims`;
      const body = { ...(userId !== undefined && { user_id: userId }), request_id: requestId };
      return ask<Claim>(ways, { method: 'POST', path, body, requestId, signal });
    },
    getClaim: (claimId, { signal } = {}) =>
      ask<Claim>(ways, { method: 'GET', path: `/v1/claims/${encodeURIComponent(claimId)}`, signal }),
    release: (claimId, { signal } = {}) =>
      ask<Claim>(ways, { method: 'DELETE', path: `/v1/claims/${encodeURIComponent(claimId)}`, signal }),
    pool: (poolId, { signal } = {}) =>
      ask<Pool>(ways, { method: 'GET', path: `/v1/pools/${encodeURIComponent(poolId)}`, signal }),
    follow: (poolId, { signal } = {}) => follow(ways, `/v1/pools/${encodeURIComponent(poolId)}/live`, signal),
  };
}

async function* follow(
  ways: AskOptions,
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<PoolNews, void, undefined> {
  for (let failures = 0; !signal?.aborted; failures++) {
    const opened = await open(ways, path, signal);
    let wait: number | undefined;
    if ('refusal' in opened) {
      if (signal?.aborted) return;
      if (!opened.refusal.retryable) throw new SluiceError(opened.refusal, failures + 1);
      wait = opened.refusal.retryAfterMs;
    } else if (opened.body !== null) {
      for await (const { event, data } of untilLost(opened.body)) {
        failures = 0;
        if (event === 'pool') yield JSON.parse(data) as PoolNews;
      }
    }
    await ways.sleep(pauseMs(failures + 1, wait, ways.random), signal).catch((error: unknown) => {
      if (!signal?.aborted) throw error;
    });
  }
}

/** A lost connection is the end of these events; the next connection tells what was missed. */
async function* untilLost(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent, void, undefined> {
  const events = readEvents(body);
  try {
    for (;;) {
      const next = await events.next().catch(() => undefined);
      if (next === undefined || next.done) return;
      yield next.value;
    }
  } finally {
    await events.return();
  }
}
