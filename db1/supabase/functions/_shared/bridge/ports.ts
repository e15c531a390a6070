// What the bridge needs from the world. Node gives it Postgres, the Edge Function gives it supabase-js.

import type { Clock, Log, Metrics, Tracer } from '../ports.ts';

/** A row of public.bridge_take. */
export interface TakenMessage {
  readonly msg_id: number;
  readonly read_ct: number;
  /** Deliveries that count against the message, this one included. */
  readonly attempts: number;
  /** Deliveries since the last one that was finished whose workers never did: they died, or lost their lease. */
  readonly takeovers: number;
  readonly message: unknown;
  /**
   * Null for a message that was put on the queue by hand; `mismatch` where the claim is not what the message says; `ending`
   * where it is going to end.
   */
  readonly claim_state: string | null;
}

/** What a pool's messages call. */
export interface Calls {
  readonly validation_webhook_url: string | null;
  readonly commit_rpc_name: string;
  readonly commit_webhook_url: string | null;
}

/** A row of public.bridge_lanes: a lane that has messages, and one of its pools; null for those without a lane of their own. */
export interface LaneOfPool extends Calls {
  readonly lane: number;
  readonly pool_id: string | null;
}

/** A row of public.bridge_config. */
export interface PoolConfig extends Calls {
  readonly pool_id: string;
  readonly max_retries: number;
  readonly visibility_timeout_sec: number;
  /** Hosts that its hooks may have although they are private. */
  readonly allowed_hosts: readonly string[];
}

/** As public.bridge_finish knows them. `untried` promises that this delivery has not tried to commit. */
export type Verdict =
  | 'committed'
  | 'refused'
  | 'gone'
  | 'retry'
  | 'outage'
  | 'untried'
  | 'dead_letter'
  | 'validated';

export interface Finish {
  readonly msg_id: number;
  readonly read_ct: number;
  readonly verdict: Verdict;
  /** Why; of a commit what made it, null for the ledger. */
  readonly reason: string | null;
  readonly delay_ms: number;
}

/** DB1, the intake. */
export interface Intake {
  lanes(): Promise<LaneOfPool[]>;
  /** Up to `wanted` of each lane, and no more than a pool's ceiling allows now. Suspects are left out. */
  take(wants: readonly { lane: number; wanted: number }[], leaseSec: number): Promise<TakenMessage[]>;
  /** At most one message of these lanes, whose workers died or lost it twice. */
  takeSuspect(lanes: readonly number[], leaseSec: number): Promise<TakenMessage[]>;
  config(poolIds: string[]): Promise<PoolConfig[]>;
  /** Whether each is the first claim of its slot; one that has ended, or is unknown, is left out. */
  firstClaims(claimIds: readonly string[]): Promise<Map<string, boolean>>;
  /** The ids whose lease was still held and now lasts longer. */
  extend(messages: readonly { msg_id: number; read_ct: number }[], leaseSec: number): Promise<number[]>;
  /** What became of each, by msg_id: its verdict, or lost_lease. */
  finish(finishes: readonly Finish[]): Promise<Map<number, string>>;
}

/** What is carried: the payload of a message that is fit to become a ticket. */
export interface Payload extends Record<string, unknown> {
  readonly pool_id: string;
  readonly resource_id: string;
  readonly user_id: string;
  readonly claim_id?: string;
  /** Whether the user id was proven; a message without the field is of a proven user. */
  readonly verified?: boolean;
  /** The header of the claim's caller. A message is anybody's JSON: one that is not valid is ignored. */
  readonly traceparent?: unknown;
}

/** DB2, the ledger. */
export interface Ledger {
  /** public.finalize_batch: an outcome for each payload, in their order. */
  finalizeBatch(payloads: readonly Payload[]): Promise<('committed' | 'already' | 'conflict' | 'voided')[]>;
  /** public.tickets_of: whether each payload has its ticket, another stands in its way, or there is none; writes nothing. */
  ticketsOf(payloads: readonly Payload[]): Promise<('already' | 'conflict' | undefined)[]>;
  /** Any other function with one argument p_payload. */
  call(functionName: string, payload: Payload): Promise<void>;
}

/**
 * The target cannot have seen the request: no connection, no address, or an address that may not be called. Why a hook got
 * no answer matters: this says nothing about the message, while a target that goes silent may do so because of it.
 */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

export interface HookCall {
  readonly url: string;
  readonly payload: Payload;
  /** Of the call, the same at each try: what validates a claim and what commits it have different ones. */
  readonly id: string;
  readonly idempotencyKey: string;
  readonly claimId: string;
  /** The header of that name; the call has none where undefined. */
  readonly traceparent?: string | undefined;
  /** Besides those the worker was started with. */
  readonly allowedHosts: readonly string[];
  readonly signal: AbortSignal;
}

export interface Hook {
  /**
   * POSTs the payload as JSON with X-Idempotency-Key and X-Claim-Id, signed where there is a secret. Resolves with the status;
   * rejects when there was no answer, with Unreachable where the target cannot have seen the request.
   */
  post(call: HookCall): Promise<number>;
}

export interface BridgePorts {
  readonly intake: Intake;
  /** Asked for only when a pool needs it, so that a bridge of hooks alone needs no DB2. */
  readonly ledger: () => Ledger;
  readonly hook: Hook;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  /** Hears why a target is left alone, by the name that the metrics have for it. */
  readonly onOutage?: (target: string, why: string) => void;
  readonly now: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
}
