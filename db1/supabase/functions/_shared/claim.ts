// The claim door: take a slot, look at a claim, give it back.

import { type Caller, identify } from './auth.ts';
import { CLAIM_BODY, requestIdOf, userIdOf } from './claim_body.ts';
import { ClaimLanes } from './claim_lanes.ts';
import { actsForAll, findOwn, findSeen, type OwnClaim, type OwnerPorts } from './claim_owner.ts';
import { HttpError } from './errors.ts';
import { MissingNames } from './missing_names.ts';
import { type Clock, type Log, type Metrics, NO_TRACER, type Tracer, type Turn } from './ports.ts';
import { type HttpRequest, type HttpResponse, jsonResponse, type Route, readJson, refuse } from './router.ts';
import { readTraceparent, type TraceParent, writeTraceparent } from './traceparent.ts';

export interface ClaimRequest {
  readonly poolId: string;
  readonly userId: string;
  readonly requestId: string | null;
  /** How many slots, all of them or none; undefined is one. */
  readonly quantity?: number | undefined;
  /** True where a token vouches for the user; the pool may insist on it. */
  readonly verified: boolean;
  /** What a buyer has shown; null where a server of ours asks, which makes its own checks. */
  readonly proof: ClaimProof | null;
  /** Of the caller, for the message; undefined where there was none, or none that is valid. */
  readonly traceparent?: string;
}

export interface ClaimProof {
  /** SHA-256 of the secret, in hex; none where a token says who asks. */
  readonly secret_hash?: string;
  readonly address: string;
  /** An anonymous sign-in. */
  readonly guest?: true;
  /** The challenge that the buyer has solved, and how hard it was. */
  readonly challenge?: string;
  readonly difficulty?: number;
}

type Refusal =
  | 'sold_out'
  | 'limit'
  | 'address_limit'
  | 'closed'
  | 'unknown_pool'
  | 'auth_required'
  | 'guests_refused'
  | 'server_required'
  | 'challenge_required'
  | 'challenge_used'
  | 'secret_required'
  | 'quantity_refused'
  | 'not_enough';

/** One of the claims of a request for several slots. */
export interface GroupClaim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly label: string | null;
}

/**
 * What intake.order_view says of the order of a claim. A group of a pool without payment has no status and no price. DB1 says
 * refund_due; whether it is `refunded` DB2 knows.
 */
export interface OrderView {
  readonly order_id: string;
  readonly status:
    | 'held'
    | 'paying'
    | 'paid'
    | 'expired'
    | 'released'
    | 'voided'
    | 'refund_due'
    | 'refunded'
    | null;
  readonly amount: number | null;
  readonly currency: string | null;
  readonly unit_price: number | null;
  readonly seats: number;
  readonly hold_until: string | null;
  readonly claims: readonly (GroupClaim & { readonly state: string })[];
}

/** A row of public.claim_batch. The claim's columns are null where the outcome is a refusal. */
export interface ClaimOutcome {
  /** Which request it answers, counted from 1. */
  readonly ordinal: number;
  readonly outcome: 'claimed' | 'same' | 'busy' | Refusal;
  readonly claim_id: string | null;
  readonly resource_id: string | null;
  readonly state: string | null;
  readonly claimed_at: string | null;
  readonly hold_until: string | null;
  /** All claims of a request for several slots, the first of them first; null for one slot. */
  readonly group_claims: readonly GroupClaim[] | null;
}

/** A row of public.get_claim, public.release_own_claim and public.release_claim_as_operator. */
export interface ClaimRecord {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly request_id: string | null;
  readonly state: string;
  readonly verified: boolean;
  readonly claimed_at: string;
  readonly hold_until: string | null;
  readonly ended_at: string | null;
  readonly end_reason: string | null;
  /** About how many messages are carried before its own; null where it is not on the queue. */
  readonly ahead: number | null;
  /** It is going to end as soon as the ledger knows, and holds its slot until then; or it turns out to be a ticket. */
  readonly ending: boolean;
  /** Whether the caller's secret is the claim's; null where the claim has none. */
  readonly secret_matches: boolean | null;
  /** What its ticket calls the slot. */
  readonly label: string | null;
  /** Null for a claim alone in a pool without payment. */
  readonly order: OrderView | null;
}

export interface ClaimPorts extends OwnerPorts {
  /**
   * One statement for all; one row per request, in any order. Aside: of one pool, on a connection that other pools do not wait
   * for, so that it may bring back the slots that the pool lost in a crash.
   */
  claimBatch(requests: readonly ClaimRequest[], isAside: boolean, cell: string): Promise<ClaimOutcome[]>;
  /**
   * The cell that the pool lives in; undefined if the pool does not exist. `notIn` has just answered that it has no such pool.
   * If this method is left out, all pools live in one cell.
   */
  cellOf?(poolId: string, notIn?: string): string | undefined | Promise<string | undefined>;
  /** Where all pools live in one cell, and it has no such pool. Throws if the pool is known to live in a cell that has left. */
  onMissing?(poolId: string): Promise<void>;
  /** Releases as this user, or with the secret of an unverified claim. A second call returns the same record. */
  releaseClaim(claimId: string, userId: string, secretHash: string | null): Promise<ClaimRecord | undefined>;
  /** Releases any user's claim, with an audit row under this name. A second call returns the same record and adds no row. */
  releaseAsOperator(claimId: string, actor: string): Promise<ClaimRecord | undefined>;
  /** The link of a ticket; tickets have none where left out. */
  ticketUrl?(claimId: string): Promise<string>;
  /** SHA-256, in hex. */
  hash(text: string): string;
  /** The network address that the request comes from, as its limits know it. */
  addressOf(request: HttpRequest): string;
  /** The challenge that the solution belongs to, where it is solved and meant for this pool; none can be asked for where left out. */
  verifyChallenge?(
    solution: string,
    poolId: string,
    address: string,
  ): Promise<{ readonly id: string; readonly difficulty: number } | undefined>;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly tracer?: Tracer;
  readonly now: Clock;
  readonly turn?: Turn;
}

/** The states of public.claim_state in which the slot has gone back on sale. */
export const FREED_STATES: ReadonlySet<string> = new Set([
  'released',
  'expired',
  'refused',
  'discarded',
  'voided',
]);

export class ClaimRoutes {
  readonly #ports: ClaimPorts;
  readonly #lanes: ClaimLanes;
  /** Pools that do not exist: a claim for one costs the lane of all claims a look at its inventory. */
  readonly #missingPools: MissingNames;

  /** `maxWaiting` is for each cell. */
  constructor(ports: ClaimPorts, maxWaiting?: number) {
    this.#ports = ports;
    this.#missingPools = new MissingNames(ports.now);
    this.#lanes = new ClaimLanes(ports, maxWaiting);
  }

  routes(): Route[] {
    return [
      {
        method: 'POST',
        path: '/v1/pools/:pool/claims',
        isBrief: true,
        handle: (request, pool) => this.#claim(request, pool),
      },
      { method: 'GET', path: '/v1/claims/:claim', handle: (request, id) => this.#show(request, id) },
      { method: 'DELETE', path: '/v1/claims/:claim', handle: (request, id) => this.#release(request, id) },
    ];
  }

  /** For shutdown: everything that was accepted gets its answer, nothing new is taken. */
  drain(): Promise<void> {
    return this.#lanes.drain();
  }

  /** The claim that the request names, and who asks; throws where it is not the caller's own. */
  own(request: HttpRequest, claimId: string): Promise<OwnClaim> {
    return findOwn(this.#ports, request, claimId);
  }

  async #claim(request: HttpRequest, poolId: string): Promise<HttpResponse> {
    const startedMs = this.#ports.now();
    // Not awaited where there is nothing to wait for, here and below: this is the hottest path there is.
    const known = identify(this.#ports, request);
    const caller = known instanceof Promise ? await known : known;
    const isBuyer = caller.role === 'anonymous' || caller.role === 'user';
    const admitted = isBuyer ? this.#ports.admit?.(request, 1) : undefined;
    if (admitted !== undefined) await admitted;
    const body = readJson(request, CLAIM_BODY);
    const { quantity = 1 } = body;
    if (isBuyer && quantity > 1) await this.#ports.admit?.(request, quantity - 1);
    const requestId = requestIdOf(body.request_id, request.headers['idempotency-key']);
    const userId = userIdOf(caller, body.user_id);
    const verified = caller.role !== 'anonymous';
    if (this.#missingPools.has(poolId)) return refuse('unknown_pool', request.requestId);
    const shown = this.#proofOf(caller, request, poolId, body);
    const proof = shown instanceof Promise ? await shown : shown;
    const trace = readTraceparent(request.headers.traceparent);
    const asked = { poolId, userId, requestId, quantity: body.quantity, verified, proof };
    const answer = await this.#lanes.submit(
      trace === undefined ? asked : { ...asked, traceparent: writeTraceparent(trace) },
    );
    this.#trace(answer, poolId, trace, startedMs);
    const { outcome, claim_id, resource_id, state, claimed_at, hold_until, group_claims } = answer;
    // Another buyer may hold its slot by now.
    if (outcome === 'same' && FREED_STATES.has(state ?? '')) return refuse('claim_ended', request.requestId);
    if (outcome !== 'claimed' && outcome !== 'same') {
      if (outcome === 'busy') throw new HttpError('busy');
      if (outcome === 'unknown_pool') {
        await this.#ports.onMissing?.(poolId);
        this.#missingPools.add(poolId);
      }
      return refuse(outcome, request.requestId);
    }
    const status = outcome === 'claimed' ? 201 : 200;
    const claim = {
      claim_id,
      resource_id,
      pool_id: poolId,
      user_id: userId,
      request_id: requestId,
      status: state,
      claimed_at,
      hold_until,
    };
    if (group_claims === null) return jsonResponse(status, claim);
    const order = { order_id: claim_id, seats: group_claims.length };
    return jsonResponse(status, { ...claim, order, claims: group_claims });
  }

  /** A promise only where a challenge has to be looked at. */
  #proofOf(
    caller: Caller,
    request: HttpRequest,
    poolId: string,
    { secret, challenge }: { secret?: string | undefined; challenge?: string | undefined },
  ): ClaimProof | null | Promise<ClaimProof> {
    if (actsForAll(caller)) return null;
    const { hash, addressOf } = this.#ports;
    let proof: ClaimProof = { address: addressOf(request) };
    if (caller.role === 'anonymous' && secret !== undefined) proof = { ...proof, secret_hash: hash(secret) };
    if (caller.role === 'user' && caller.isGuest) proof = { ...proof, guest: true };
    return challenge === undefined ? proof : this.#withChallenge(proof, challenge, poolId);
  }

  async #withChallenge(proof: ClaimProof, challenge: string, poolId: string): Promise<ClaimProof> {
    const solved = await this.#ports.verifyChallenge?.(challenge, poolId, proof.address);
    if (solved === undefined)
      throw new HttpError('challenge_required', 'The solution is wrong, too old, or of another pool.');
    return { ...proof, challenge: solved.id, difficulty: solved.difficulty };
  }

  /** A refusal has no claim, and so no way to follow. */
  #trace(
    { outcome, claim_id }: ClaimOutcome,
    poolId: string,
    caller: TraceParent | undefined,
    startMs: number,
  ): void {
    const { tracer = NO_TRACER, now } = this.#ports;
    if (!tracer.isOn || claim_id === null) return;
    tracer.record({
      name: 'claim',
      subject: claim_id,
      ...(caller && { caller }),
      isRoot: outcome === 'claimed',
      kind: 'server',
      startMs,
      endMs: now(),
      attributes: { 'sluice.claim_id': claim_id, 'sluice.pool_id': poolId, 'sluice.outcome': outcome },
    });
  }

  async #show(request: HttpRequest, claimId: string): Promise<HttpResponse> {
    const caller = await identify(this.#ports, request);
    const { claim, isOwn } = await findSeen(this.#ports, caller, request, claimId);
    if (!isOwn) return jsonResponse(200, { claim_id: claim.claim_id, status: claim.state });
    return jsonResponse(200, await this.#presented(claim));
  }

  async #release(request: HttpRequest, claimId: string): Promise<HttpResponse> {
    const { claim, secretHash, isBuyer, actor } = await this.own(request, claimId);
    const released = isBuyer
      ? await this.#ports.releaseClaim(claimId, claim.user_id, secretHash)
      : await this.#ports.releaseAsOperator(claimId, actor);
    if (released === undefined) throw new HttpError('unknown_claim');
    return jsonResponse(statusOfRelease(released), await this.#presented(released));
  }

  /** The claim as its owner sees it. A ticket has its link. */
  async #presented(claim: ClaimRecord): Promise<Record<string, unknown>> {
    const { state, verified: _, secret_matches: __, order, ...rest } = claim;
    const seen = { ...rest, status: state, ...(await this.#ticketOf(claim)) };
    if (order === null) return seen;
    const claims = order.claims.map(async (one) => ({ ...one, ...(await this.#ticketOf(one)) }));
    return { ...seen, order: { ...order, claims: await Promise.all(claims) } };
  }

  async #ticketOf({
    claim_id,
    state,
  }: Pick<ClaimRecord, 'claim_id' | 'state'>): Promise<{ ticket_url?: string }> {
    const { ticketUrl } = this.#ports;
    return state !== 'committed' || ticketUrl === undefined ? {} : { ticket_url: await ticketUrl(claim_id) };
  }
}

/** Accepted, where a worker has the claim: it ends when the ledger knows. */
export function statusOfRelease({ ending }: ClaimRecord): 200 | 202 {
  return ending ? 202 : 200;
}
