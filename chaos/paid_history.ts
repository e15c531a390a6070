import type { FinalState } from './history.ts';

/**
 * What a run knows about paid orders: what buyers and operators did, what both databases held in the end, and Stripe's own
 * books. Times of clients are those of a history; times of tables are milliseconds since 1970, on the same machine's clock.
 */
export type PaidHistory = {
  /** When the run began, in milliseconds since 1970. */
  startedAtMs: number;
  /** Whose payments count for the pools: the first part of each payment key. */
  tenant: string;
  orders: OrderCall[];
  voids: VoidCall[];
  final: PaidState;
  books: Books;
};

/** One order, as its buyer was told of it. */
export type OrderCall = {
  /** The id of its first claim. */
  orderId: string;
  poolId: string;
  userId: string;
  /** Every claim of it that the buyer was told of. */
  claimIds: string[];
  /** The session that the buyer was sent to; null: it never got there. */
  sessionId: string | null;
  /** When the buyer pressed the button on Stripe's page, and with what; null: it never did. */
  paidAt: number | null;
  paidWith: 'card' | 'delayed' | null;
  /** True where Stripe's page said that the session takes no money any more. */
  isTurnedAway: boolean;
};

/** What an operator asked for. No other call has the same reason: by it an audit row is known as this call's. */
export type VoidCall = {
  claimIds: string[];
  isRefund: boolean;
  reason: string;
  at: number;
  /** `unknown`: it may have happened, and no answer came. */
  answer: 'done' | 'unknown';
};

export type PaidState = {
  orders: {
    orderId: string;
    poolId: string;
    userId: string;
    seats: number;
    unitPrice: number;
    holdUntil: number | null;
    graceUntil: number | null;
    paymentKey: string | null;
  }[];
  /** Every claim of an order. */
  claims: {
    claimId: string;
    orderId: string;
    slotId: string;
    state: string;
    live: boolean;
    replaces: string | null;
    freedAt: number | null;
  }[];
  decisions: { paymentKey: string; orderId: string; decision: string; reason: string | null }[];
  checkouts: { orderId: string; n: number; sessionId: string | null; state: string }[];
  outbox: { id: string; kind: string; state: string }[];
  refunds: { id: string; paymentKey: string; amount: number; state: string }[];
  /** The tenant's events. */
  events: FinalState['events'];
  tombstones: { claimId: string; orderId: string | null; voidedAt: number }[];
  tickets: { claimId: string; orderId: string | null }[];
  /** Of the tenant's payments, all kinds. */
  credits: { paymentKey: string; amount: number; kind: string }[];
  payments: { paymentKey: string; refunded: number }[];
};

/** What the stand-in for Stripe says that it did. */
export type Books = {
  sessions: { id: string; orderId: string; status: string; paymentIntent: string | null }[];
  payments: {
    id: string;
    amount: number;
    /** The order that its metadata names; null: none. */
    orderId: string | null;
    /** False while a delayed method has not paid, or never will. */
    isPaid: boolean;
    isLost: boolean;
    /** Made on the page of a session, and not by a server of the seller's own. */
    hasSession: boolean;
    /** `isOurs`: Sluice asked for it. A refund that failed counts for nothing. */
    refunds: { amount: number; isOurs: boolean }[];
    /** No event about its refunds outside, or its dispute, ever arrived: only a comparison with Stripe can know of them. */
    isUntold: boolean;
  }[];
};
