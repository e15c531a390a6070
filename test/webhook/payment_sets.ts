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
/** Names its payment but no user, as the provider sends it: it belongs to the payment's user. */
const about = (
  type: string,
  second: number,
  id: string,
  amount: number,
  status: string,
  more: object = {},
): PaymentEvent => ({
  type,
  second,
  version: OLD,
  object: { id, payment_intent: 'pi_RUN', currency: 'usd', amount, status, metadata: {}, ...more },
});

export const refund = (type: string, second: number, id: string, amount: number, status = 'succeeded') =>
  about(`refund.${type}`, second, id, amount, status);

/** A balance transaction: below zero is withdrawn, above it reinstated. The fee is the account's, not the buyer's. */
const moved = (name: string, amount: number, more: object = {}) => ({
  ...{ id: `txn_${name}_RUN`, object: 'balance_transaction', type: 'adjustment', amount, currency: 'usd' },
  ...{ exchange_rate: null, fee: 1500, net: amount - 1500 },
  ...more,
});
const dispute = (type: string, second: number, status: string, transactions: object[] = [], id = 'dp_RUN') =>
  about(`charge.dispute.${type}`, second, id, 400, status, { balance_transactions: transactions });
const TAKEN = moved('taken', -400);
const RETURNED = moved('returned', 400);

/** Of 1000 that were held, 600 are taken. */
const PART = { captured: true, amount_captured: 600 };
const HELD = { captured: false, amount_captured: 0 };

const inBasil = (events: PaymentEvent[]): PaymentEvent[] =>
  events.map((event) => ({ ...event, version: BASIL }));

/** Since 2025-03-31 it names neither payment intent nor charge. */
const invoice = (type: string, second: number, more: object): PaymentEvent => ({
  type: `invoice.${type}`,
  second,
  version: OLD,
  object: { id: 'in_RUN', amount_paid: 1000, currency: 'usd', metadata: {}, ...more },
});
const session = (type: string, second: number, more: object): PaymentEvent => ({
  type: `checkout.session.${type}`,
  second,
  version: OLD,
  object: { id: 'cs_RUN', payment_intent: 'pi_RUN', amount_total: 1000, currency: 'usd', ...USER, ...more },
});
const withoutUser = (event: PaymentEvent): PaymentEvent => ({
  ...event,
  object: { ...event.object, metadata: {} },
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
    outcome: 'refunded, paid 1000, refunded 1000, balance 0 usd',
  },
  disputed: {
    name: 'paid by two events, a refund that fails, a dispute that is won',
    events: [
      charge('succeeded', 0),
      session('completed', 0, { payment_status: 'paid' }),
      refund('created', 1, 're_RUN', 250, 'pending'),
      refund('failed', 1, 're_RUN', 250, 'failed'),
      dispute('created', 1, 'needs_response', [TAKEN]),
      dispute('closed', 1, 'won', [TAKEN, RETURNED]),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd',
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
    outcome: 'canceled, paid nothing, refunded 0, balance none',
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
    outcome: 'canceled, paid nothing, refunded 0, balance none',
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
    outcome: 'succeeded, paid 600, refunded 0, balance 600 usd',
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
    outcome: 'partially_refunded, paid 600, refunded 100, balance 500 usd',
  },
  takenInPartAndRefundedInBasil: {
    name: 'held, taken in part, then refunded in two parts, since the rest no longer counts as a refund',
    events: inBasil([
      charge('succeeded', 0, HELD),
      charge('captured', 1, { ...PART, amount_refunded: 0 }),
      charge('refunded', 2, { ...PART, amount_refunded: 450 }),
      refund('created', 2, 're_RUN', 450),
      charge('refunded', 3, { ...PART, amount_refunded: 500 }),
      intent('succeeded', 1, 600),
    ]),
    outcome: 'partially_refunded, paid 600, refunded 500, balance 100 usd',
  },
  backfilledInOld: {
    name: 'held, taken in part and refunded, with one event from a backfill in the old version of the account',
    events: [
      ...inBasil([
        charge('captured', 1, { ...PART, amount_refunded: 0 }),
        refund('created', 2, 're_RUN', 100),
        refund('updated', 2, 're_RUN', 100),
        refund('created', 3, 're_more_RUN', 50),
      ]),
      charge('captured', 1, { ...PART, amount_refunded: 400 }),
      intent('succeeded', 1, 600),
    ],
    outcome: 'partially_refunded, paid 600, refunded 150, balance 450 usd',
  },
  backfilledRefundsInOld: {
    name: 'held and taken in part, with refunds that a backfill tells in the old version of the account',
    events: [
      ...inBasil([
        charge('captured', 1, { ...PART, amount_refunded: 0 }),
        charge('refunded', 3, { ...PART, amount_refunded: 150 }),
        refund('created', 3, 're_more_RUN', 50),
      ]),
      refund('created', 1, 're_rest_RUN', 400),
      refund('created', 2, 're_RUN', 100),
      charge('refunded', 2, { ...PART, amount_refunded: 500 }),
    ],
    outcome: 'partially_refunded, paid 600, refunded 150, balance 450 usd',
  },
  upgradedMeanwhile: {
    name: 'held and taken in part in an old version, then refunded after the endpoint was upgraded',
    events: [
      charge('captured', 1, { ...PART, amount_refunded: 400 }),
      refund('created', 1, 're_rest_RUN', 400),
      charge('refunded', 1, { ...PART, amount_refunded: 400 }),
      ...inBasil([
        refund('created', 2, 're_RUN', 100),
        charge('refunded', 2, { ...PART, amount_refunded: 100 }),
        refund('failed', 3, 're_RUN', 100, 'failed'),
      ]),
    ],
    outcome: 'succeeded, paid 600, refunded 0, balance 600 usd',
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
    outcome: 'partially_refunded, paid 1000, refunded 500, balance 500 usd',
  },
  invoiced: {
    name: 'an invoice that names no payment, the payment intent, its charge and a refund',
    events: inBasil([
      intent('created', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0, { captured: true, amount_captured: 1000 }),
      invoice('paid', 0, USER),
      charge('refunded', 1, { captured: true, amount_captured: 1000, amount_refunded: 250 }),
      refund('created', 1, 're_RUN', 250),
    ]),
    outcome: 'partially_refunded, paid 1000, refunded 250, balance 750 usd',
  },
  inquired: {
    name: 'an inquiry that became a dispute and was won, told by the end of it',
    events: [
      intent('created', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0),
      dispute('created', 1, 'warning_needs_response'),
      dispute('closed', 2, 'won', [TAKEN, RETURNED]),
      dispute('funds_reinstated', 2, 'won', [RETURNED, TAKEN]),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd',
  },
  inquiredAndLost: {
    name: 'an inquiry that became a dispute and was lost, told by the end of it',
    events: [
      intent('created', 0, 0),
      intent('processing', 0, 0),
      intent('succeeded', 0),
      charge('succeeded', 0),
      dispute('created', 1, 'warning_needs_response'),
      dispute('closed', 2, 'lost', [TAKEN]),
    ],
    outcome: 'dispute_lost, paid 1000, refunded 0, balance 600 usd',
  },
  prevented: {
    name: 'a dispute that was prevented and took nothing, and another that only asked',
    events: [
      intent('succeeded', 0),
      charge('succeeded', 0),
      dispute('created', 1, 'prevented'),
      dispute('closed', 1, 'prevented'),
      dispute('created', 2, 'warning_needs_response', [], 'dp_more_RUN'),
      dispute('closed', 3, 'warning_closed', [], 'dp_more_RUN'),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd',
  },
  appealed: {
    name: 'a dispute that was won, appealed and lost, closed twice',
    events: [
      charge('succeeded', 0),
      dispute('created', 1, 'needs_response', [TAKEN]),
      dispute('closed', 2, 'won', [TAKEN, RETURNED]),
      dispute('funds_withdrawn', 3, 'appeal_under_review', [TAKEN, RETURNED, moved('again', -400)]),
      dispute('updated', 3, 'appeal_needs_response', [TAKEN, RETURNED, moved('again', -400)]),
      dispute('closed', 4, 'lost', [TAKEN, RETURNED, moved('again', -400)]),
    ],
    outcome: 'dispute_lost, paid 1000, refunded 0, balance 600 usd',
  },
  appealedAndWon: {
    name: 'a dispute that was lost, appealed and won, with a fee that is a transaction of its own',
    events: [
      charge('succeeded', 0),
      dispute('funds_withdrawn', 1, 'needs_response', [TAKEN, moved('fee', -1500, { type: 'stripe_fee' })]),
      dispute('closed', 2, 'lost', [TAKEN, moved('fee', -1500, { type: 'stripe_fee' })]),
      dispute('updated', 3, 'appeal_under_review', [TAKEN]),
      dispute('funds_reinstated', 4, 'won', [TAKEN, RETURNED]),
      dispute('closed', 4, 'won', [TAKEN, RETURNED]),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 1000 usd',
  },
  disputedTwice: {
    name: 'two disputes on one charge, one won and one lost in part, and a refund that was canceled',
    events: [
      intent('succeeded', 0),
      dispute('closed', 2, 'won', [TAKEN, RETURNED]),
      dispute('created', 3, 'needs_response', [moved('other', -500)], 'dp_more_RUN'),
      dispute(
        'funds_reinstated',
        4,
        'under_review',
        [moved('part', 200), moved('other', -500)],
        'dp_more_RUN',
      ),
      refund('created', 1, 're_RUN', 100, 'requires_action'),
      refund('updated', 1, 're_RUN', 100, 'canceled'),
    ],
    outcome: 'dispute_won, paid 1000, refunded 0, balance 700 usd',
  },
  settledInAnother: {
    name: 'a dispute that was settled in another currency, at another rate when it came back in part',
    events: [
      charge('succeeded', 0),
      dispute('created', 1, 'warning_needs_response'),
      dispute('created', 1, 'needs_response', [
        moved('taken', -361, { currency: 'eur', exchange_rate: 0.9031 }),
      ]),
      dispute('funds_reinstated', 2, 'under_review', [
        moved('part', 92, { currency: 'eur', exchange_rate: 0.92 }),
      ]),
      refund('created', 1, 're_RUN', 100, 'pending'),
      refund('updated', 1, 're_RUN', 100),
    ],
    outcome: 'disputed, paid 1000, refunded 100, balance 600 usd',
  },
  takenInParts: {
    name: 'held and captured in three parts, as charge and payment intent tell',
    events: inBasil([
      charge('succeeded', 0, HELD),
      charge('captured', 1, { captured: true, amount_captured: 200 }),
      charge('captured', 2, { captured: true, amount_captured: 500 }),
      charge('updated', 3, { captured: true, status: 'succeeded', amount_captured: 900 }),
      intent('succeeded', 3, 900),
      refund('created', 4, 're_RUN', 150),
    ]),
    outcome: 'partially_refunded, paid 900, refunded 150, balance 750 usd',
  },
  paidLater: {
    name: 'a session whose money comes later, and the user is named by the session alone',
    events: [
      session('completed', 0, { payment_status: 'unpaid' }),
      withoutUser(intent('processing', 0, 0)),
      session('async_payment_succeeded', 1, { payment_status: 'paid' }),
      withoutUser(intent('succeeded', 1)),
      withoutUser(charge('succeeded', 1)),
      withoutUser(charge('refunded', 2, { amount_refunded: 250 })),
    ],
    outcome: 'partially_refunded, paid 1000, refunded 250, balance 750 usd',
  },
  invoicedBefore: {
    name: 'an invoice that names its payment, whose subscription names the user',
    events: [
      withoutUser(intent('succeeded', 0)),
      withoutUser(charge('succeeded', 0)),
      invoice('paid', 0, { payment_intent: 'pi_RUN', charge: 'ch_RUN', subscription_details: USER }),
      invoice('payment_succeeded', 0, { payment_intent: 'pi_RUN', subscription_details: USER }),
      dispute('created', 1, 'needs_response', [TAKEN]),
      dispute('closed', 2, 'lost', [TAKEN]),
    ],
    outcome: 'dispute_lost, paid 1000, refunded 0, balance 600 usd',
  },
  invoicedSince: {
    name: 'an invoice with its payments included, and one that names no payment, since 2025-03-31',
    events: inBasil([
      withoutUser(intent('succeeded', 0)),
      withoutUser(charge('succeeded', 0, { captured: true, amount_captured: 1000 })),
      invoice('paid', 0, {
        parent: { subscription_details: USER },
        payments: {
          data: [{ amount_paid: 1000, payment: { type: 'payment_intent', payment_intent: 'pi_RUN' } }],
        },
      }),
      invoice('paid', 0, { parent: { subscription_details: USER } }),
      {
        type: 'invoice_payment.paid',
        second: 0,
        version: BASIL,
        object: {
          ...{ id: 'inpay_RUN', invoice: 'in_RUN', amount_paid: 1000, currency: 'usd', status: 'paid' },
          payment: { type: 'payment_intent', payment_intent: 'pi_RUN' },
        },
      },
      refund('created', 1, 're_RUN', 1000),
    ]),
    outcome: 'refunded, paid 1000, refunded 1000, balance 0 usd',
  },
} satisfies Record<string, { name: string; events: PaymentEvent[]; outcome: string }>;
