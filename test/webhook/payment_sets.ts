// Payments as Stripe tells them: sets of six events each, and what they come to in whatever order they arrive.

/** The version in which an event was rendered. Before 2025-03-31 the part of a hold that is let go is a refund. */
const OLD = '2024-06-20';
const BASIL = '2025-03-31.basil';

export type PaymentEvent = { type: string; second: number; version: string; object: Record<string, unknown> };

// RUN stands in every id for the number of the payment, so that a set can be played again for another payment.
const USER = { metadata: { user_id: 'ann_RUN' } };
const MONEY = { currency: 'usd', amount: 1000 };

const intent = (type: string, second: number, received = 1000): PaymentEvent => ({
  type: `payment_intent.${type}`,
  second,
  version: OLD,
  object: { id: 'pi_RUN', amount_received: received, ...MONEY, ...USER },
});
const charge = (type: string, second: number, more: object = {}): PaymentEvent => ({
  type: `charge.${type}`,
  second,
  version: OLD,
  object: { id: 'ch_RUN', payment_intent: 'pi_RUN', ...MONEY, ...USER, ...more },
});
/** Names its payment but no user, as the provider sends it: it has to wait until the payment is known. */
const about = (type: string, second: number, id: string, amount: number, status: string): PaymentEvent => ({
  type,
  second,
  version: OLD,
  object: { id, payment_intent: 'pi_RUN', currency: 'usd', amount, status, metadata: {} },
});

export const refund = (type: string, second: number, id: string, amount: number, status = 'succeeded') =>
  about(`refund.${type}`, second, id, amount, status);
const dispute = (type: string, second: number, status: string) =>
  about(`charge.dispute.${type}`, second, 'dp_RUN', 400, status);

/** Of 1000 that were held, 600 are taken. */
const PART = { captured: true, amount_captured: 600 };
const HELD = { captured: false, amount_captured: 0 };

const inBasil = (events: PaymentEvent[]): PaymentEvent[] =>
  events.map((event) => ({ ...event, version: BASIL }));

/** Names neither payment intent nor charge, as since 2025-03-31. */
const invoicePaid = (second: number): PaymentEvent => ({
  type: 'invoice.paid',
  second,
  version: BASIL,
  object: { id: 'in_RUN', amount_paid: 1000, currency: 'usd', ...USER },
});

export const PAID = { byIntent: intent('succeeded', 0), byCharge: charge('succeeded', 0) };

/** Six events of one payment each, most of them within one second, and what they come to. */
export const SETS = {
  refunded: {
    name: 'paid, then refunded in two parts',
    events: [
      intent('created', 0),
      intent('processing', 0),
      intent('succeeded', 0),
      charge('refunded', 1, { amount_refunded: 300 }),
      charge('refunded', 1, { amount_refunded: 1000 }),
      refund('created', 1, 're_RUN', 300),
    ],
    outcome: 'refunded, paid 1000, refunded 1000, balance 0 usd, waiting 0',
  },
  disputed: {
    name: 'paid by two events, a refund that fails, a dispute that is won',
    events: [
      charge('succeeded', 0),
      {
        type: 'checkout.session.completed',
        second: 0,
        version: OLD,
        object: {
          id: 'cs_RUN',
          payment_intent: 'pi_RUN',
          payment_status: 'paid',
          amount_total: 1000,
          currency: 'usd',
          ...USER,
        },
      },
      refund('created', 1, 're_RUN', 250, 'pending'),
      refund('failed', 1, 're_RUN', 250, 'failed'),
      dispute('created', 1, 'needs_response'),
      dispute('closed', 1, 'won'),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd, waiting 0',
  },
  canceled: {
    name: 'canceled after a failure',
    events: [
      intent('created', 0),
      intent('requires_action', 0),
      intent('processing', 0),
      charge('failed', 0),
      intent('payment_failed', 1),
      intent('canceled', 0),
    ],
    outcome: 'canceled, paid nothing, refunded 0, balance none, waiting 0',
  },
  voided: {
    name: 'held and let go, which an old version calls a refund',
    events: [
      intent('created', 0),
      charge('succeeded', 0, HELD),
      charge('refunded', 1, { ...HELD, amount_captured: null, amount_refunded: 1000, refunded: true }),
      refund('created', 1, 're_RUN', 1000),
      about('charge.refund.updated', 1, 're_RUN', 1000, 'succeeded'),
      intent('canceled', 1, 0),
    ],
    outcome: 'canceled, paid nothing, refunded 0, balance none, waiting 0',
  },
  takenInPart: {
    name: 'held, taken in part, and the rest let go, which an old version calls a refund',
    events: [
      intent('created', 0, 0),
      charge('succeeded', 0, HELD),
      charge('captured', 1, { ...PART, amount_refunded: 400 }),
      charge('refunded', 1, { ...PART, amount_refunded: 400 }),
      refund('created', 1, 're_RUN', 400),
      intent('succeeded', 1, 600),
    ],
    outcome: 'succeeded, paid 600, refunded 0, balance 600 usd, waiting 0',
  },
  takenInPartAndRefunded: {
    name: 'held, taken in part, then refunded in part, in an old version',
    events: [
      charge('succeeded', 0, HELD),
      charge('refunded', 1, { ...PART, amount_refunded: 400 }),
      refund('created', 1, 're_RUN', 400),
      charge('refunded', 2, { ...PART, amount_refunded: 500 }),
      refund('created', 2, 're_more_RUN', 100),
      intent('succeeded', 1, 600),
    ],
    outcome: 'partially_refunded, paid 600, refunded 100, balance 500 usd, waiting 0',
  },
  takenInPartAndRefundedInBasil: {
    name: 'held, taken in part, then refunded in two parts, since the rest is no refund any more',
    events: inBasil([
      charge('succeeded', 0, HELD),
      charge('captured', 1, { ...PART, amount_refunded: 0 }),
      charge('refunded', 2, { ...PART, amount_refunded: 450 }),
      refund('created', 2, 're_RUN', 450),
      charge('refunded', 3, { ...PART, amount_refunded: 500 }),
      intent('succeeded', 1, 600),
    ]),
    outcome: 'partially_refunded, paid 600, refunded 500, balance 100 usd, waiting 0',
  },
  refundedSingly: {
    name: 'refunds that only tell themselves, of a payment that is told in steps',
    events: [
      intent('created', 0, 0),
      intent('processing', 0, 0),
      refund('created', 1, 're_RUN', 300, 'pending'),
      refund('updated', 1, 're_RUN', 300),
      refund('created', 2, 're_more_RUN', 200),
      intent('succeeded', 0),
    ],
    outcome: 'partially_refunded, paid 1000, refunded 500, balance 500 usd, waiting 0',
  },
  invoiced: {
    name: 'an invoice that names no payment, the payment intent, its charge and a refund',
    events: inBasil([
      intent('created', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0, { captured: true, amount_captured: 1000 }),
      invoicePaid(0),
      charge('refunded', 1, { captured: true, amount_captured: 1000, amount_refunded: 250 }),
      refund('created', 1, 're_RUN', 250),
    ]),
    outcome: 'partially_refunded, paid 1000, refunded 250, balance 750 usd, waiting 0',
  },
  inquired: {
    name: 'an inquiry that became a dispute and was won, without a word of the withdrawal',
    events: [
      intent('created', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0),
      dispute('created', 1, 'warning_needs_response'),
      dispute('closed', 2, 'won'),
      dispute('funds_reinstated', 2, 'won'),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd, waiting 0',
  },
  inquiredAndLost: {
    name: 'an inquiry that became a dispute and was lost, without a word of the withdrawal',
    events: [
      intent('created', 0, 0),
      intent('processing', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0),
      dispute('created', 1, 'warning_needs_response'),
      dispute('closed', 2, 'lost'),
    ],
    outcome: 'dispute_lost, paid 1000, refunded 0, balance 600 usd, waiting 0',
  },
} satisfies Record<string, { name: string; events: PaymentEvent[]; outcome: string }>;
