import type { PaidHistory } from './paid_history.ts';

/**
 * One run, as it is judged: what clients were told, what was done to the system meanwhile, and what both databases held
 * when it had come to rest. Times are milliseconds since the run began, on the clock of the process that runs it.
 */
export type History = {
  seed: number;
  minutes: number;
  /**
   * From here to the storm no fault happened and everything was warm: what the healthy one is compared with. Left out where
   * the run has no healthy one.
   */
  quietAt?: number;
  /** When the storm began, when the last fault was healed, and when everything was drained (null: it never was). */
  stormAt: number;
  calmAt: number;
  drainedAt: number | null;
  /** What was left where it never was, by what it is, such as "refunds". */
  left?: Record<string, number>;
  pools: Pool[];
  claims: ClaimCall[];
  releases: ReleaseCall[];
  events: EventCall[];
  callEvents: CallEventCall[];
  operatorActions: OperatorCall[];
  /** What the healthy one asked for, beside its neighbours. Each is among the claims or the events too. */
  healthy: HealthyCall[];
  /**
   * Messages put on the queue by hand, and events, that can only end as dead letters: by their claim_id, or resource_id
   * where they name no claim, or by the text of their user_id where they name neither; an event by its event_id.
   */
  poison: string[];
  targetCalls: TargetCall[];
  faults: Fault[];
  /** What workers said when a lease of theirs was lost, read from their logs. */
  lostLeases: LostLease[];
  /** How each delivery ended, as its worker was told; workers log it at level debug (worker_log.ts reads it). */
  finishes: Finish[];
  /** The same of events that workers had under a lease. */
  eventFinishes: EventFinish[];
  final: FinalState;
  /** What was bought and sold; left out where the run had no pools with payment. */
  paid?: PaidHistory;
  /** What processes did without being told to: ended by themselves, or did not stop when asked to. */
  surprises?: string[];
  /** What this world lacked, and why: its faults did not happen. */
  leftOut?: string[];
  /** How often each kind of client was told what, such as "claim: 503 database_unavailable". */
  answers?: Record<string, number>;
  /** Where journals and logs are, while they are kept. */
  dir?: string;
};

export type Pool = {
  poolId: string;
  capacity: number;
  commit: 'rpc' | 'webhook';
  /** Left out: claims of this pool never expire. */
  holdSec?: number;
  /** True where the target refuses every commit: claims that reach the bridge can only become dead letters. */
  neverCommits?: boolean;
  /** Left out: claims of this pool need no payment. */
  payment?: { unitPrice: number; graceSec: number };
};

/** What the last attempt of a request told its client. `unknown`: it never got an answer. */
export type ClaimCall = {
  requestId: string;
  poolId: string;
  userId: string;
  /** How many slots it asks for; 1 where it is left out. */
  quantity?: number;
  startedAt: number;
  endedAt: number;
  attempts: number;
  answer: 'claimed' | 'sold_out' | 'refused' | 'unknown';
  /** Every distinct claim and slot this request was ever told, over all its attempts. */
  told: { claimId: string | null; slotId: string }[];
};

export type ReleaseCall = {
  claimId: string;
  at: number;
  answer: 'released' | 'ending' | 'refused' | 'unknown';
};

/** One provider event, however often it was delivered. */
export type EventCall = {
  provider: string;
  endpoint: string;
  eventId: string;
  /** The fact it tells: two events may tell the same one. */
  fact: { object: string; kind: 'paid' | 'refunded'; userId: string; amount: number; currency: string };
  deliveries: number;
  acknowledgedAt: number | null;
};

/** One request of the healthy one, made once. Its answer is `done`, or what it got instead. */
export type HealthyCall = {
  kind: 'claim' | 'event';
  /** The claim's request_id, or the event_id. */
  id: string;
  /** When it was due: a client that is kept from asking waits too. */
  at: number;
  answer: string;
  answeredAt: number;
  /** When its ticket, or its effect, was seen in the ledger; null: never. */
  carriedAt: number | null;
};

export type CallEventCall = {
  siteId: string;
  signatureHash: string;
  deliveries: number;
  /** How many deliveries were answered as stored, and how many as already known. */
  stored: number;
  noop: number;
  /** When the first answer of either kind came. */
  acknowledgedAt?: number;
};

export type OperatorCall = {
  /** As the audit log calls it: dead_letter_replay, dead_letter_discard, webhook_replay or webhook_skip. */
  action: string;
  /** What it named, as text: message ids of dead letters, or ids of rows of webhook_events. */
  ids: string[];
  /** No other call has the same: by it an audit row is known as this call's. */
  reason: string;
  at: number;
  answer: 'done' | 'refused' | 'unknown';
  /** Per id what was answered, where the answer came. */
  results: { id: string; result: string }[];
};

/** A request that reached the webhook target (key: its x-claim-id), and what the target answered (`none`: it hung up or hung). */
export type TargetCall = {
  kind: 'validate' | 'commit';
  key: string;
  at: number;
  status: number | 'none';
  poolId: string;
};

export type Fault = {
  name: string;
  target: string;
  startedAt: number;
  healedAt: number;
  /** The first acknowledgement of the touched kind of traffic after the fault was healed. */
  recoveredAt: number | null;
};

/** ids: claim ids (or message ids, where a message names no claim) for the bridge, event ids for webhooks. */
export type LostLease = { worker: string; kind: 'bridge' | 'webhook'; ids: string[]; at: number };

/** What bridge_finish answered about one delivery: a verdict, or lost_lease. */
export type Finish = {
  worker: string;
  msgId: string;
  claimId: string | null;
  readCt: number;
  outcome: string;
  at: number;
};

/** What became of one try of an event. Attempts and takeovers are those of the lease under which it was tried. */
export type EventFinish = {
  worker: string;
  eventId: string;
  attempts: number;
  takeovers: number;
  result: string;
  at: number;
};

export type FinalState = {
  /** The settings on which durability rests, as each server had them. */
  durability?: { db1: Record<string, string>; db2: Record<string, string> };
  slots: { poolId: string; slotId: string; status: 'AVAILABLE' | 'RESERVED' | 'CONSUMED' }[];
  claims: {
    claimId: string;
    requestId: string | null;
    poolId: string;
    slotId: string;
    userId: string;
    state: string;
    live: boolean;
    endReason: string | null;
    /** The first claim of those that were claimed together, or are paid together. Left out: it stands alone. */
    orderId?: string | null;
  }[];
  queued: Omit<Letter, 'reason'>[];
  deadLetters: Letter[];
  /** Dead letters that an operator has replayed or discarded. */
  archivedLetters: Letter[];
  tickets: { slotId: string; claimId: string | null; poolId: string; userId: string }[];
  events: {
    /** The id of the row, which operators name. */
    id: string;
    provider: string;
    endpoint: string;
    eventId: string;
    status: string;
    /** Of the lease that ended it. */
    attempts: number;
    takeovers: number;
    error: string | null;
    /** The operator who skipped it. */
    skippedBy: string | null;
  }[];
  credits: { provider: string; eventId: string; userId: string; amount: number; currency: string }[];
  payments: {
    provider: string;
    object: string;
    userId: string;
    state: string;
    amount: number | null;
    refunded: number;
    currency: string | null;
  }[];
  calls: { siteId: string; signatureHash: string | null }[];
  audit: { database: 'db1' | 'db2'; action: string; actor: string; reason: string | null; ids: string[] }[];
};

/** identity: claim_id, else resource_id, else user_id of the message, as in `poison`. */
export type Letter = {
  msgId: string;
  claimId: string | null;
  poolId: string | null;
  identity: string | null;
  reason: string;
};
