// Ends claims that a worker may still carry. The ledger gets a tombstone first, after which it refuses a late ticket; then
// the claim ends in the intake and its slot is on sale again. Both calls may be repeated: a second one changes nothing.

import type { CallFunction } from '../call_function.ts';
import { type Blame, blameOf } from '../failure.ts';
import { byHalves } from '../halving.ts';
import type { Log } from '../ports.ts';

/** A row of public.take_ends. */
export interface EndingClaim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly verified: boolean;
  /** As what it ends. */
  readonly cause: string;
  /** False for a pool that commits by a hook: the intake has waited until no worker can be calling it any more. */
  readonly in_ledger: boolean;
}

/** As public.void_tickets answers: the claim can no longer become a ticket, or it is one already and stays one. */
export type EndOutcome = 'voided' | 'ticket';

export type OnEnd = (claimId: string, outcome: EndOutcome) => void;

export interface EndPorts {
  /** public.expire_holds: how many holds had run out; fewer than `limit` when no more is due. */
  expire(limit: number): Promise<number>;
  /** public.take_ends */
  take(limit: number, leaseSec: number): Promise<EndingClaim[]>;
  /** public.void_tickets: what became of each, by claim_id. */
  voidTickets(claims: readonly EndingClaim[]): Promise<ReadonlyMap<string, EndOutcome>>;
  /** public.finish_ends: how many have ended. */
  finish(claims: readonly EndingClaim[], outcomes: readonly EndOutcome[]): Promise<number>;
  readonly log: Log;
}

/** Each part is a transaction of its own, and a hold of another pool may wait for two: as in intake.expire_due_holds. */
export const HOLDS_AT_ONCE = 1_000;
export const ENDS_AT_ONCE = 500;
/** What one claim of a batch may have caused, a lock that it waits for in vain among it; everything else is an outage. */
const OF_ONE: ReadonlySet<Blame> = new Set<Blame>([
  'collision',
  'slow',
  'broken',
  'data',
  'size',
  'constraint',
  'unread',
]);
/** A batch takes well under a second. The lease only saves work: a second worker would do the same again. */
const LEASE_SEC = 10;

export class Ender {
  readonly #ports: EndPorts;
  readonly #leaseSec: number;
  /** Taken, and the ledger could not be asked: tried first when it is back. */
  #kept: EndingClaim[] = [];

  constructor(ports: EndPorts, leaseSec = LEASE_SEC) {
    this.#ports = ports;
    this.#leaseSec = leaseSec;
  }

  /** Every hold that is due ends, or is going to end where a worker has taken its message. Returns how many were due. */
  async expire(signal: AbortSignal): Promise<number> {
    let expired = 0;
    for (;;) {
      const due = await this.#ports.expire(HOLDS_AT_ONCE);
      expired += due;
      if (due < HOLDS_AT_ONCE || signal.aborted) return expired;
    }
  }

  /**
   * Every claim that is going to end has ended, or is a ticket. Returns how many, and tells of each whose tombstone the ledger
   * was asked for. Throws while a database is away.
   */
  async end(signal: AbortSignal, onEnd: OnEnd = () => undefined): Promise<number> {
    let ended = 0;
    for (;;) {
      const claims =
        this.#kept.length > 0 ? this.#kept : await this.#ports.take(ENDS_AT_ONCE, this.#leaseSec);
      this.#kept = [];
      if (claims.length > 0) ended += await this.#endAll(claims, onEnd);
      if (claims.length < ENDS_AT_ONCE || signal.aborted) return ended;
    }
  }

  async #endAll(claims: readonly EndingClaim[], onEnd: OnEnd): Promise<number> {
    const { voidTickets, finish, log } = this.#ports;
    let ended = 0;
    let outage: unknown;
    const elsewhere = claims.filter((claim) => !claim.in_ledger);
    if (elsewhere.length > 0)
      ended += await finish(
        elsewhere,
        elsewhere.map(() => 'voided' as const),
      );
    const inLedger = claims.filter((claim) => claim.in_ledger);
    await byHalves(inLedger, {
      async work(members) {
        if (outage !== undefined || members.length === 0) return;
        const became = await voidTickets(members);
        // Claims that the ledger did not answer for are looked at again when their lease is over.
        const told = members.filter(({ claim_id }) => became.has(claim_id));
        ended += await finish(
          told,
          told.map(({ claim_id }) => became.get(claim_id) as EndOutcome),
        );
        for (const [claimId, outcome] of became) onEnd(claimId, outcome);
      },
      mayBeOneMembers: (error) => OF_ONE.has(blameOf(error)),
      fail(members, error) {
        if (OF_ONE.has(blameOf(error)))
          log.error('a claim could not be ended', { claim_id: members[0]?.claim_id, cause: error });
        else outage = error;
      },
    });
    if (outage === undefined) return ended;
    this.#kept = inLedger;
    throw outage;
  }
}

export function createEndPorts(db1: CallFunction, db2: () => CallFunction, log: Log): EndPorts {
  return {
    log,
    async expire(limit) {
      const [row] = await db1<{ expire_holds: number }>('expire_holds', { p_limit: limit });
      return row?.expire_holds ?? 0;
    },
    take: (limit, leaseSec) => db1<EndingClaim>('take_ends', { p_limit: limit, p_lease_sec: leaseSec }),
    async voidTickets(claims) {
      const rows = await db2()<{ claim_id: string; outcome: EndOutcome }>('void_tickets', {
        p_claims: claims,
      });
      return new Map(rows.map(({ claim_id, outcome }) => [claim_id, outcome]));
    },
    async finish(claims, outcomes) {
      const [row] = await db1<{ finish_ends: number }>('finish_ends', {
        p_claim_ids: claims.map(({ claim_id }) => claim_id),
        p_outcomes: outcomes,
      });
      return row?.finish_ends ?? 0;
    },
  };
}
