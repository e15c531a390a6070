// A client for buyers, for browsers, Node, Deno and Bun: Web globals only.
//
//   const sluice = createSluiceClient({ url: 'https://tickets.example.com' });
//   const claim = await sluice.claim({ pool: 'opening_night', userId: 'ann' });

import { type AskOptions, ask, open } from './ask.ts';
import { SluiceError, type SluiceErrorCode } from './error.ts';
import { readEvents, type StreamEvent } from './event_stream.ts';
import { createRequest, type SluiceRequest } from './request.ts';
import { pauseMs, type RetryOptions, sleep } from './retry.ts';
import { type SolveOptions, solveChallenge } from './solve.ts';

export { createRequest, SluiceError, type SluiceErrorCode, type SluiceRequest, solveChallenge };

/**
 * `held`: it waits for its payment. `queued` and `validated`: on its way. `committed`: it is a ticket. `dead_letter`: an operator
 * decides. The others have given the slot back; `voided` was a ticket.
 */
export type ClaimStatus =
  | 'held'
  | 'queued'
  | 'validated'
  | 'committed'
  | 'dead_letter'
  | 'released'
  | 'expired'
  | 'refused'
  | 'discarded'
  | 'voided';

/** One of several slots of a request. */
export interface GroupClaim {
  readonly claim_id: string;
  readonly resource_id: string;
  /** What the seat is called; null where it has no name. */
  readonly label: string | null;
}

/** What holds the claims of one request together: of several slots, or of a pool that is paid for. */
export interface Order {
  /** The claim_id of the first claim. */
  readonly order_id: string;
  readonly seats: number;
  /** `getClaim` tells this and all that follows. Null: nothing is paid for it. `paying`: the payment is on its way. */
  readonly status?:
    | 'held'
    | 'paying'
    | 'paid'
    | 'expired'
    | 'released'
    | 'voided'
    | 'refund_due'
    | 'refunded'
    | null;
  /** In minor units of the currency; null where nothing is paid for it. */
  readonly amount?: number | null;
  readonly currency?: string | null;
  readonly unit_price?: number | null;
  readonly hold_until?: string | null;
  readonly claims?: readonly (GroupClaim & { readonly state: ClaimStatus; readonly ticket_url?: string })[];
}

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
  /** What the seat is called, as `getClaim` tells; null where it has no name. */
  readonly label?: string | null;
  /** Once it has ended without a ticket. */
  readonly ended_at?: string | null;
  readonly end_reason?: string | null;
  /** About how many claims, of all pools, become tickets before this one, as `getClaim` tells; null: not on the queue. */
  readonly ahead?: number | null;
  /** It ends as soon as the ledger knows and holds its slot until then; or it turns out to be a ticket. */
  readonly ending?: boolean;
  /** Of a ticket, as `getClaim` tells: its page. The holder of the link holds the ticket. */
  readonly ticket_url?: string;
  readonly order?: Order;
  /** Of `claim` with a quantity: all of them, this one first. `getClaim` has them in its `order`. */
  readonly claims?: readonly GroupClaim[];
}

/** A claim and the secret that it was made with. Keep both: without a token, nothing else reads or releases it. */
export interface OwnClaim extends Claim {
  readonly secret: string;
}

/** What a claim is read and released with. */
export type ClaimKey = Pick<OwnClaim, 'claim_id' | 'secret'>;

/**
 * A claim by its id alone: all of it with the token of the user whose claim it is. Without one no more than these two, and only
 * of a claim that was made without a secret.
 */
export type SeenClaim = Pick<Claim, 'claim_id' | 'status'> & Partial<Claim>;

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
  /** Claims need the solution of a challenge; `claim` solves the server's own. */
  readonly challenge: boolean;
  readonly max_per_address: number | null;
  /** Where `require_auth`: whether an anonymous sign-in will do. */
  readonly allow_guests: boolean;
  /** The most slots that one request may take. */
  readonly max_quantity: number;
  /** `payment`: a claim is held until it is paid, and is a ticket then. */
  readonly confirm_by: 'auto' | 'payment';
  /** Of one slot, in minor units of the currency; null where nothing is paid. */
  readonly price: number | null;
  readonly currency: string | null;
  /** What buyers read; each is null where the organiser has not set it. */
  readonly details: PoolDetails | null;
}

export interface PoolDetails {
  readonly title: string | null;
  readonly starts_at: string | null;
  /** In which `starts_at` is told to people; null is UTC. */
  readonly time_zone: string | null;
  readonly place: string | null;
  readonly picture_url: string | null;
  readonly text: string | null;
}

/** Where a claim is paid for. */
export interface Checkout {
  readonly url: string;
  /** Until when the slots are held for the payment. */
  readonly hold_until: string;
  /** For all slots, in minor units of the currency. */
  readonly amount: number;
  readonly currency: string;
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

export interface ClaimOrder extends Partial<SluiceRequest> {
  readonly pool: string;
  /** May be left out with a user's token. */
  readonly userId?: string;
  /** How many slots, all of them or none; one where left out. */
  readonly quantity?: number;
  /** A solution of your own, for a server with a verifier of its own; `claim` solves the server's own challenges itself. */
  readonly challenge?: string;
}

export interface CallOptions {
  /** Ends the call, pauses included. A claim that was on its way may have been made: ask again with its request id. */
  readonly signal?: AbortSignal;
}

/** `onProgress` hears of it while a challenge is solved. */
export interface ClaimOptions extends CallOptions, Pick<SolveOptions, 'onProgress'> {
  /**
   * The header of W3C Trace Context: the claim's spans, and the calls to the pool's hooks, are of your trace. Where your `fetch`
   * adds the header itself, as that of OpenTelemetry does, leave it out.
   */
  readonly traceparent?: string;
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
   * Takes one slot, or a quantity of them. Tries again after lost connections, timeouts and answers that say so, always as one request: it takes
   * its slots once at most. Solves the server's challenge where the pool asks for one. Throws a SluiceError for what trying again does not change:
   * sold_out, limit, closed, …
   */
  claim(order: ClaimOrder, options?: ClaimOptions): Promise<OwnClaim>;
  getClaim(claim: ClaimKey, options?: CallOptions): Promise<Claim>;
  getClaim(claimId: string, options?: CallOptions): Promise<SeenClaim>;
  /** Gives the slot back; by its id alone with the user's token only. A second call gives the same answer. `ending`: a worker has the claim; `getClaim` tells how it ends. */
  release(claim: ClaimKey | string, options?: CallOptions): Promise<Claim>;
  /**
   * For a pool that is paid for: the page where the buyer pays for all slots of the request. A second call gives the same page. Throws a
   * SluiceError for what trying again does not change: hold_over, paid, not_for_payment, …
   */
  checkout(claim: ClaimKey | string, options?: CallOptions): Promise<Checkout>;
  /** Up to a second old. */
  pool(poolId: string, options?: CallOptions): Promise<Pool>;
  /** What is left, as it changes; connects again by itself. Ends when the signal is aborted. */
  follow(poolId: string, options?: CallOptions): AsyncGenerator<PoolNews, void, undefined>;
}

const TIMEOUT_MS = 10_000;
const MAX_TRIES = 6;
/** A solution can be too old or too easy by the time it arrives, not again and again. */
const MAX_SOLVED = 3;
const WANTS_SOLUTION: ReadonlySet<SluiceErrorCode> = new Set(['challenge_required', 'challenge_used']);

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
    claim: (order, options = {}) => takeSlot(ways, order, options),
    getClaim: (claim: ClaimKey | string, { signal }: CallOptions = {}) =>
      ask<Claim>(ways, { method: 'GET', ...placeOf(claim), signal }),
    release: (claim, { signal } = {}) => ask<Claim>(ways, { method: 'DELETE', ...placeOf(claim), signal }),
    checkout: (claim, { signal } = {}) => {
      const { path, headers } = placeOf(claim);
      return ask<Checkout>(ways, {
        method: 'POST',
        path: `${path}/checkout`,
        ...(headers && { headers }),
        signal,
      });
    },
    pool: (poolId, { signal } = {}) => ask<Pool>(ways, { method: 'GET', path: pathOf(poolId), signal }),
    follow: (poolId, { signal } = {}) => follow(ways, `${pathOf(poolId)}/live`, signal),
  };
}

const pathOf = (pool: string): string => `/v1/pools/${encodeURIComponent(pool)}`;

function placeOf(claim: ClaimKey | string): { path: string; headers?: Record<string, string> } {
  if (typeof claim === 'string') return { path: `/v1/claims/${encodeURIComponent(claim)}` };
  return { ...placeOf(claim.claim_id), headers: { 'x-claim-secret': claim.secret } };
}

async function takeSlot(ways: AskOptions, order: ClaimOrder, options: ClaimOptions): Promise<OwnClaim> {
  const request = requestOf(order, isProof(ways.headers.authorization));
  const path = pathOf(order.pool);
  const { signal, traceparent } = options;
  const headers: Record<string, string> = traceparent === undefined ? {} : { traceparent };
  let { challenge } = order;
  for (let solved = 0; ; solved++) {
    const body = {
      ...(order.userId !== undefined && { user_id: order.userId }),
      request_id: request.requestId,
      secret: request.secret,
      ...(order.quantity !== undefined && { quantity: order.quantity }),
      ...(challenge !== undefined && { challenge }),
    };
    try {
      const asked = { method: 'POST', path: `${path}/claims`, headers, body, request, signal };
      const made = await ask<Claim>(ways, asked);
      return { ...made, secret: request.secret };
    } catch (error) {
      const wantsSolution = error instanceof SluiceError && WANTS_SOLUTION.has(error.code);
      if (!wantsSolution || solved === MAX_SOLVED) throw error;
      const given = await ask(ways, { method: 'GET', path: `${path}/challenge`, request, signal });
      challenge = given === null ? undefined : await solveChallenge(given, options);
      // A challenge of another kind: the caller has to bring its solution.
      if (given !== null && challenge === undefined) throw error;
    }
  }
}

/** An id that is sent again with another secret is another request, and would take a second slot. The public key proves nothing. */
function requestOf({ requestId, secret }: ClaimOrder, isProven: boolean): SluiceRequest {
  if (requestId !== undefined && secret === undefined && !isProven)
    throw new TypeError("without a user's token a requestId needs its secret: keep both");
  const made = createRequest();
  return { requestId: requestId ?? made.requestId, secret: secret ?? made.secret };
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

/** Whether the token says who asks: the public key of a project does not. What is not a JWT is an operator's key. */
function isProof(authorization: string | undefined): boolean {
  const claims = authorization?.split('.')[1];
  if (claims === undefined) return authorization !== undefined;
  try {
    return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))).role !== 'anon';
  } catch {
    return true;
  }
}
