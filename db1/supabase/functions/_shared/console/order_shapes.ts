// An order as the two databases tell it. Amounts are in minor units.

import type { TimelineEvent } from './claims.ts';

export const ORDER_STATUSES = [
  'held',
  'paying',
  'paid',
  'expired',
  'released',
  'voided',
  'refund_due',
] as const;

/** A row of public.order_list. */
export interface OrderRow {
  /** The id of its first claim, and metadata.claim_id of its payments. */
  readonly order_id: string;
  readonly pool_id: string;
  readonly user_id: string;
  readonly verified: boolean;
  readonly status: string;
  readonly seats: number;
  readonly unit_price: number;
  readonly amount: number;
  readonly currency: string;
  readonly ordered_at: string;
  /** Null where it was paid, or a paid session is on its way. */
  readonly hold_until: string | null;
  /** The payment that bought it. */
  readonly payment_key: string | null;
  /** Where there are several cells: the one that has it. */
  readonly cell?: string;
}

export interface OrderClaim {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly label: string | null;
  readonly state: string;
  /** The claim in whose place a late payment put it. */
  readonly replaces: string | null;
  readonly claimed_at: string;
  readonly ended_at: string | null;
  readonly end_reason: string | null;
}

export interface OrderCheckout {
  readonly n: number;
  readonly state: string;
  readonly session_id: string | null;
  readonly payment_intent: string | null;
  readonly created_at: string;
  readonly attempts: number;
  readonly next_attempt_at: string;
}

export interface OrderDecision {
  readonly payment_key: string;
  readonly amount: number;
  readonly currency: string;
  readonly decision: string;
  readonly reason: string | null;
  /** Whether Sluice made the session that was paid. */
  readonly is_own: boolean;
  readonly decided_at: string;
}

/** What public.order_details of DB1 answers. */
export interface IntakeOrder {
  /** It was ordered when the first of its claims was made. */
  readonly order: Omit<OrderRow, 'ordered_at'>;
  readonly claims: readonly OrderClaim[];
  readonly checkouts: readonly OrderCheckout[];
  readonly decisions: readonly OrderDecision[];
}

/** A row of public.payments, as far as it is shown. */
export interface OrderPayment {
  /** The tenant. */
  readonly provider: string;
  readonly object_id: string;
  readonly state: string;
  readonly captured: number;
  readonly refunded: number;
  readonly disputed: number | null;
  readonly currency: string | null;
  readonly occurred_at: string;
}

export interface OrderEvent {
  readonly id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: string;
  readonly received_at: string;
}

/** What the courier carries between the databases: a row of public.claim_outbox. */
export interface OrderErrand {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly attempts: number;
  readonly error: string | null;
  readonly created_at: string;
}

export interface OrderTicket {
  readonly claim_id: string;
  readonly resource_id: string;
  readonly confirmed_at: string;
  readonly used_at: string | null;
}

export interface VoidedTicket {
  readonly claim_id: string;
  readonly resource_id: string;
  /** Null where it never was a ticket. */
  readonly confirmed_at: string | null;
  readonly voided_at: string;
  readonly cause: string;
}

export const REFUND_STATES = ['due', 'review', 'sent', 'done', 'failed', 'skipped'] as const;
export type RefundState = (typeof REFUND_STATES)[number];

/** A row of public.list_refunds. Amounts are in minor units. */
export interface RefundRow {
  readonly id: string;
  readonly order_id: string | null;
  /** `tenant/payment`. */
  readonly payment_key: string;
  readonly amount: number;
  readonly currency: string;
  readonly reason: string;
  readonly state: RefundState;
  /** No operator asked for it. */
  readonly is_auto: boolean;
  /** The operator who sent or skipped it, or asked for it. */
  readonly decided_by: string | null;
  readonly provider_refund_id: string | null;
  readonly tries: number;
  readonly error: string | null;
  readonly created_at: string;
  readonly next_attempt_at: string;
  /** When the brake held it back. */
  readonly braked_at: string | null;
  readonly sent_at: string | null;
}

/**
 * What an order was owed has gone: Stripe has it (how long a bank takes is not ours to know), or an operator saw to it another way.
 * Until there is a refund, the courier has still to bring DB1's word.
 */
export function isSettled(refunds: readonly RefundRow[]): boolean {
  return refunds.length > 0 && !refunds.some(({ state }) => OPEN.has(state));
}

const OPEN: ReadonlySet<RefundRow['state']> = new Set(['due', 'review', 'failed']);

/** What public.ledger_order_details of DB2 answers. */
export interface LedgerOrder {
  readonly payments: readonly OrderPayment[];
  readonly events: readonly OrderEvent[];
  readonly outbox: readonly OrderErrand[];
  readonly refunds: readonly RefundRow[];
  readonly tickets: readonly OrderTicket[];
  readonly voided: readonly VoidedTicket[];
}

/** An order with all that is known about it. */
export interface OrderView extends Omit<IntakeOrder, 'order'>, Omit<LedgerOrder, 'events' | 'outbox'> {
  readonly order: OrderRow;
  /** False while DB2 does not answer: payments, refunds and tickets are not known then, and empty here. */
  readonly is_ledger_known: boolean;
  readonly timeline: readonly TimelineEvent[];
}
