// What the webhook doors and workers need from DB2. Node gives it Postgres, the Edge Function gives it supabase-js.

import type { ReadEvent, Scheme } from './provider.ts';

export type EventStatus = 'pending' | 'processing' | 'success' | 'skipped' | 'failed' | 'dead_letter';

/** What of a row of public.webhook_endpoints matters here. */
export interface Endpoint {
  readonly webhook_id: string;
  readonly name: string;
  readonly provider: string;
  readonly mode: 'inline' | 'queued';
  /** What a delivery is answered while DB2 is away: 503, or 2xx after it was committed to the inbox. */
  readonly on_outage: 'refuse' | 'accept';
  /** Names of secrets, newest first; never their values. */
  readonly secret_names: readonly string[];
  readonly verify_token_name: string | null;
  /** The address that Twilio signs; null: as requested, which is taken for requests to this very machine only. */
  readonly public_url: string | null;
  readonly scheme: Scheme | null;
  readonly max_body_bytes: number;
  readonly is_active: boolean;
}

/** One verified POST: its events, and the bytes they came in. */
export interface Delivery {
  readonly webhookId: string;
  readonly events: readonly ReadEvent[];
  readonly body: Uint8Array;
  /** Null where we asked the provider for it. */
  readonly signature: string | null;
  /** Set where it waited in the inbox. */
  readonly receivedAt?: string;
}

/** A row of webhook.record_events. */
export interface Recorded {
  /** Which event it answers, counted from 1. */
  readonly ordinal: number;
  readonly id: string;
  readonly outcome: 'recorded' | 'skipped' | 'duplicate' | 'body_differs' | 'quarantined';
  readonly status: EventStatus;
  /** That of its handler. */
  readonly lane: number;
}

/** A row of webhook.process_event and of webhook.process_events: `status` is null where the lease was lost. */
export interface Processed {
  readonly status: EventStatus | null;
  readonly error: string | null;
  readonly outcome: string;
  /** What the try itself meant: the outcome of a last attempt is a dead letter, whatever it means. Null where none was made. */
  readonly verdict?: FinishOutcome | null;
}

/** A row of webhook.event_lanes: what is taken fairly. A lane is one handler's. */
export interface EventLane {
  readonly lane: number;
  /** Null where its events have no handler. */
  readonly kind: 'sql' | 'typescript' | null;
  readonly handler_name: string | null;
}

/** A row of webhook.take_events. */
export interface TakenEvent {
  readonly id: string;
  readonly lease_token: string;
  readonly lane: number;
  readonly webhook_id: string;
  /** A tenant: see providerOf. */
  readonly provider: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly occurred_at: string | null;
  /** Counted from 1, this one too. */
  readonly attempts: number;
  readonly takeovers: number;
  readonly payload: unknown;
  /** Null where no handler is registered for the type. */
  readonly handler_kind: 'sql' | 'typescript' | null;
  readonly handler_name: string | null;
  readonly idempotency_key: string;
  readonly max_attempts: number;
}

export type Lease = Pick<TakenEvent, 'id' | 'lease_token'>;

export interface WebhookStore {
  findEndpoint(name: string): Promise<Endpoint | undefined>;
  /** One call for all; the answers of each delivery are in the order of its events. */
  record(deliveries: readonly Delivery[], isBackfilled?: boolean): Promise<Recorded[][]>;
  /** Lets one recorded event take effect now; `in_flight` where another is at it. Each lane has connections of its own. */
  processEvent(id: string, lane: number): Promise<Processed>;
  /** What the event's handler wants to be answered; null where it said nothing. */
  findReply(id: string): Promise<string | null>;
  /** The lanes that have due events. */
  lanes(): Promise<EventLane[]>;
  /** Of each lane up to as many as are wanted of it. */
  take(lanes: readonly number[], wanted: readonly number[]): Promise<TakenEvent[]>;
  /** At most one event of these lanes that a worker may have died of. */
  takeSuspect(lanes: readonly number[]): Promise<TakenEvent[]>;
  /** Runs SQL handlers; what became of each, by id. */
  process(events: readonly Lease[]): Promise<Map<string, Processed>>;
  /** The ids whose lease was still held and now lasts longer. */
  extend(events: readonly Lease[]): Promise<string[]>;
  /** Takes a lease on one event of these TypeScript handlers; undefined where it has ended, or another holds it. */
  begin(id: string, handlerNames: readonly string[]): Promise<TakenEvent | undefined>;
  /** The status that the event has now, or lost_lease. */
  finish(event: Lease, outcome: FinishOutcome, error: string | null): Promise<string>;
}

/** As webhook.mark_events describes them. The last four do not count as an attempt; `pending` is due at once. */
export type FinishOutcome =
  | 'success'
  | 'skipped'
  | 'failed'
  | 'slow'
  | 'dead_letter'
  | 'again'
  | 'outage'
  | 'later'
  | 'pending';
