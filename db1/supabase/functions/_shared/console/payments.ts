// Payments and credits as operators look for them, and one payment with all that moved it and all that it moved.

import type { CallFunction } from '../call_function.ts';
import { HttpError } from '../errors.ts';
import type { Log } from '../ports.ts';
import { checked } from '../query.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { AuditRow } from './audit.ts';
import type { TimelineEvent } from './claims.ts';
import { GIVEN_ID, LIMIT, PAGE, searchPage } from './list.ts';
import type { IntakeOrder, OrderErrand, OrderEvent, RefundRow } from './order_shapes.ts';
import { audited, eventStep, inOrder, refundEvent } from './order_timeline.ts';

/** A row of public.payment_list. Amounts are in minor units. */
export interface PaymentRow {
  /** `tenant/payment`. */
  readonly payment_key: string;
  /** The tenant. */
  readonly provider: string;
  readonly object_id: string;
  /** Null until an event names the user. */
  readonly user_id: string | null;
  readonly state: string;
  readonly amount: number | null;
  readonly captured: number;
  readonly refunded: number;
  readonly disputed: number | null;
  readonly currency: string | null;
  readonly order_id: string | null;
  readonly occurred_at: string;
}

/** A row of the credit ledger. */
export interface CreditRow {
  readonly id: number;
  readonly created_at: string;
  readonly user_id: string;
  readonly amount: number;
  readonly currency: string;
  readonly kind: string;
  readonly provider: string;
  readonly object_id: string;
  readonly event_id: string;
  readonly business_key: string;
}

/** What public.payment_details answers. */
interface PaymentDetails {
  readonly payment: PaymentRow;
  readonly credits: readonly CreditRow[];
  readonly provider_refunds: readonly {
    readonly refund_id: string;
    readonly amount: number;
    readonly failed_at: string | null;
  }[];
  readonly transactions: readonly { readonly transaction_id: string; readonly amount: number }[];
  readonly events: readonly OrderEvent[];
  readonly outbox: readonly OrderErrand[];
  readonly refunds: readonly RefundRow[];
  readonly audit: readonly AuditRow[];
}

export interface PaymentView extends Omit<PaymentDetails, 'outbox' | 'audit' | 'events'> {
  readonly timeline: readonly TimelineEvent[];
}

export const PAYMENT_STATES = [
  'created',
  'requires_action',
  'processing',
  'failed',
  'succeeded',
  'partially_refunded',
  'refunded',
  'disputed',
  'dispute_won',
  'dispute_lost',
  'canceled',
] as const;

export const CREDIT_KINDS = ['payment', 'refund', 'dispute', 'purchase', 'purchase_void', 'forfeit'] as const;

const KEY = { type: 'string', minLength: 1, maxLength: 700 } as const satisfies Schema;

export const PAYMENT_QUERY = {
  type: 'object',
  properties: {
    provider: { ...GIVEN_ID, description: 'The tenant.' },
    user_id: GIVEN_ID,
    state: { type: 'string', pattern: `^(${PAYMENT_STATES.join('|')})$` },
    after: KEY,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export const CREDIT_QUERY = {
  type: 'object',
  properties: {
    user_id: GIVEN_ID,
    provider: { ...GIVEN_ID, description: 'The tenant.' },
    kind: { type: 'string', pattern: `^(${CREDIT_KINDS.join('|')})$` },
    after: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export interface PaymentPorts {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  readonly log: Log;
}

export function paymentAdminRoutes(ports: PaymentPorts): Route[] {
  const { db2 } = ports;
  const payments = (args: Record<string, unknown>) => db2<PaymentRow>('payment_list', args);
  const credits = (args: Record<string, unknown>) => db2<CreditRow>('credit_list', args);
  return [
    {
      method: 'GET',
      path: '/admin/payments',
      handle: (request) => searchPage(request, PAYMENT_QUERY, payments, ({ payment_key }) => payment_key),
    },
    { method: 'GET', path: '/admin/payments/:payment', handle: (_, key) => show(ports, key) },
    {
      method: 'GET',
      path: '/admin/credits',
      handle: (request) => searchPage(request, CREDIT_QUERY, credits, ({ id }) => String(id)),
    },
  ];
}

async function show(ports: PaymentPorts, given: string): Promise<HttpResponse> {
  const p_payment_key = checked(KEY, given, 'The payment');
  const [row] = await ports.db2<{ payment_details: PaymentDetails | null }>('payment_details', {
    p_payment_key,
  });
  const details = row?.payment_details;
  if (!details)
    throw new HttpError('not_found', 'No payment has this key: it is its tenant, a slash and its own id.');
  const { outbox, audit, events, ...view } = details;
  const timeline = inOrder([
    ...events.map(eventStep),
    ...details.credits.map(creditStep),
    ...outbox.map(errandStep),
    ...details.refunds.map(refundEvent),
    ...audit.map(audited),
    ...(await decisionsOf(ports, details.payment)),
  ]);
  return jsonResponse(200, { ...view, timeline } satisfies PaymentView);
}

function creditStep({ created_at, kind, amount, currency, user_id, event_id }: CreditRow): TimelineEvent {
  return { at: created_at, what: `credit_${kind}`, detail: { amount, currency, user_id, event_id } };
}

function errandStep({ created_at, kind, state, attempts, error }: OrderErrand): TimelineEvent {
  return {
    at: created_at,
    what: `asked_${kind}`,
    detail: { state, attempts, ...(error !== null && { error }) },
  };
}

/** What the intake decided about it; while that cannot be asked, a step that says so. */
async function decisionsOf(
  { db1, log }: PaymentPorts,
  { order_id, payment_key }: PaymentRow,
): Promise<TimelineEvent[]> {
  if (order_id === null) return [];
  try {
    const [row] = await db1<{ order_details: IntakeOrder | null }>('order_details', { p_order_id: order_id });
    return (row?.order_details?.decisions ?? [])
      .filter((one) => one.payment_key === payment_key)
      .map(({ decided_at, decision, reason, amount, currency }) => ({
        at: decided_at,
        what: `decided_${decision}`,
        detail: { reason, amount, currency, order_id },
      }));
  } catch (cause) {
    log.warn('the intake cannot be asked about a payment', { cause });
    return [{ at: null, what: 'intake_unreachable', detail: {} }];
  }
}
