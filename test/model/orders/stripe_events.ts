// Events as Stripe delivers them, with what the handlers of DB2 read.

import { type Dispute, type Payment, type Refund, refundedOf, type Session } from './books.ts';

export type StripeEvent = {
  id: string;
  object: 'event';
  type: string;
  created: number;
  livemode: boolean;
  api_version: string;
  data: { object: Record<string, unknown> };
};

const API_VERSION = '2025-03-31.basil';

const event = (
  id: string,
  type: string,
  created: number,
  livemode: boolean,
  object: Record<string, unknown>,
): StripeEvent => ({
  ...{ id, object: 'event', type, created, livemode, api_version: API_VERSION, data: { object } },
});

/** A copy: the session goes on. */
export function completedEvent(
  id: string,
  session: Session,
  how: 'completed' | 'async_payment_succeeded' | 'async_payment_failed',
  nowSec: number,
): StripeEvent {
  return event(id, `checkout.session.${how}`, nowSec, session.livemode, { ...session });
}

export function paidEvent(id: string, payment: Payment, nowSec: number): StripeEvent {
  const { id: intent, amount, currency, metadata, isLive } = payment;
  return event(id, 'payment_intent.succeeded', nowSec, isLive, {
    ...{ id: intent, object: 'payment_intent', amount, amount_received: amount, currency, metadata },
    ...{ status: 'succeeded', livemode: isLive },
  });
}

/** The charge tells the sum of all refunds. */
export function chargeRefundedEvent(id: string, payment: Payment, nowSec: number): StripeEvent {
  const { id: intent, amount, currency, metadata, isLive } = payment;
  return event(id, 'charge.refunded', nowSec, isLive, {
    ...{ id: chargeOf(intent), object: 'charge', payment_intent: intent, captured: true, amount },
    ...{ amount_captured: amount, amount_refunded: refundedOf(payment) },
    ...{ currency, metadata, livemode: isLive },
  });
}

/** The refund tells itself. */
export function refundEvent(
  id: string,
  name: 'created' | 'updated' | 'failed',
  { isLive }: Payment,
  refund: Refund,
  nowSec: number,
): StripeEvent {
  return event(id, `refund.${name}`, nowSec, isLive, { ...refund });
}

/** A dispute tells all that its balance transactions moved so far. */
export function disputeEvent(
  id: string,
  name: string,
  { id: intent, currency, isLive }: Payment,
  { id: dispute, amount, status, moves }: Dispute,
  nowSec: number,
): StripeEvent {
  return event(id, `charge.dispute.${name}`, nowSec, isLive, {
    ...{ id: dispute, object: 'dispute', charge: chargeOf(intent), payment_intent: intent, amount, currency },
    ...{ status, livemode: isLive, metadata: {} },
    balance_transactions: moves.map((move) => ({ ...move, currency, fee: 0, net: move.amount })),
  });
}

const chargeOf = (intent: string): string => intent.replace('pi', 'ch');
