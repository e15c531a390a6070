// Refunds (docs.stripe.com/api/refunds): never more than was paid. The texts and codes are those of docs.stripe.com/error-codes.

import type Stripe from 'stripe';
import { type Books, type Dispute, type ListedCharge, newId } from './books.ts';
import type { Events } from './events.ts';
import { type Form, formIn, required, textIn, textsIn, wholeIn } from './form.ts';
import { blankIntent, blankRefund } from './objects.ts';
import { missing, Refusal } from './refusal.ts';

const REASONS = ['duplicate', 'fraudulent', 'requested_by_customer'];

/** Payments and what is taken back of them. */
export class Money {
  readonly #books: Books;
  readonly #events: Events;

  constructor(books: Books, events: Events) {
    this.#books = books;
    this.#events = events;
  }

  findIntent(id: string): Stripe.PaymentIntent {
    const intent = this.#books.find('payment_intent', id);
    if (intent === undefined) throw missing('payment_intent', id, 'intent');
    return intent;
  }

  /** A payment that a server of the seller's own makes; only one that is confirmed with a card that works. */
  createIntent(form: Form, livemode: boolean): Stripe.PaymentIntent {
    const amount = wholeIn(form, 'amount');
    const currency = textIn(form, 'currency');
    if (amount === undefined) throw required('amount');
    if (currency === undefined) throw required('currency');
    if (textIn(form, 'confirm') !== 'true') throw required('confirm');
    const metadata = textsIn(formIn(form, 'metadata'));
    const created = this.#books.nowSec;
    return this.capture(
      blankIntent({ amount, currency, created, livemode, metadata, payment_method_types: ['card'] }),
    );
  }

  /** The card is charged. */
  capture(intent: Stripe.PaymentIntent): Stripe.PaymentIntent {
    const { id, amount, currency, livemode, metadata } = intent;
    const charge: ListedCharge = {
      id: newId('ch'),
      object: 'charge',
      amount,
      amount_captured: amount,
      amount_refunded: 0,
      captured: true,
      created: this.#books.nowSec,
      currency,
      disputed: false,
      livemode,
      metadata,
      paid: true,
      payment_intent: id,
      refunded: false,
      status: 'succeeded',
    };
    const paid = {
      ...intent,
      amount_received: amount,
      latest_charge: charge.id,
      status: 'succeeded' as const,
    };
    this.#books.put('charge', charge);
    this.#books.put('payment_intent', paid);
    this.#events.tell('charge.succeeded', charge, livemode);
    this.#events.tell('payment_intent.succeeded', paid, livemode);
    return paid;
  }

  refund(form: Form): Stripe.Refund {
    const charge = this.#chargeOf(form);
    const left = charge.amount_captured - charge.amount_refunded;
    const amount = wholeIn(form, 'amount') ?? left;
    const reason = textIn(form, 'reason') ?? null;
    if (reason !== null && !REASONS.includes(reason))
      throw new Refusal(400, `Invalid reason: must be one of ${REASONS.join(', ')}`, { param: 'reason' });
    if (charge.disputed)
      throw new Refusal(400, `Charge ${charge.id} has been charged back; cannot issue a refund.`, {
        code: 'charge_disputed',
      });
    if (left === 0)
      throw new Refusal(400, `Charge ${charge.id} has already been refunded.`, {
        code: 'charge_already_refunded',
      });
    if (amount < 1)
      throw new Refusal(400, 'Invalid positive integer', {
        code: 'parameter_invalid_integer',
        param: 'amount',
      });
    if (amount > left)
      throw new Refusal(
        400,
        `Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`,
        {
          param: 'amount',
        },
      );
    const refund = blankRefund({
      amount,
      charge: charge.id,
      created: this.#books.nowSec,
      currency: charge.currency,
      metadata: textsIn(formIn(form, 'metadata')),
      payment_intent: charge.payment_intent,
      reason: reason as Stripe.Refund['reason'],
    });
    const changed = {
      ...charge,
      amount_refunded: charge.amount_refunded + amount,
      refunded: amount === left,
    };
    this.#books.put('refund', refund);
    this.#books.put('charge', changed);
    this.#events.tell('refund.created', refund, charge.livemode === true);
    this.#events.tell('charge.refunded', changed, charge.livemode === true);
    return refund;
  }

  /** A refund that Stripe had taken for done fails at the bank. */
  failRefund(id: string): Stripe.Refund {
    const refund = this.#books.find('refund', id);
    if (refund === undefined) throw missing('refund', id);
    const failed = { ...refund, status: 'failed', failure_reason: 'lost_or_stolen_card' };
    const charge = this.#books.find('charge', String(refund.charge));
    this.#books.put('refund', failed);
    if (charge !== undefined)
      this.#books.put('charge', {
        ...charge,
        amount_refunded: charge.amount_refunded - refund.amount,
        refunded: false,
      });
    this.#events.tell('refund.failed', failed, charge?.livemode === true);
    return failed;
  }

  /** The buyer's bank takes the money back, and the seller loses. */
  loseDispute(paymentIntent: string): Dispute {
    const charge = this.#chargeOf({ payment_intent: paymentIntent });
    const amount = charge.amount_captured;
    const livemode = charge.livemode === true;
    const withdrawal = {
      id: newId('txn'),
      amount: -amount,
      currency: charge.currency,
      fee: 0,
      exchange_rate: null,
    };
    const dispute: Dispute = {
      id: newId('du'),
      object: 'dispute',
      amount,
      balance_transactions: [withdrawal],
      charge: charge.id,
      created: this.#books.nowSec,
      currency: charge.currency,
      livemode,
      payment_intent: charge.payment_intent,
      status: 'needs_response',
    };
    const lost = { ...dispute, status: 'lost' as const };
    this.#books.put('charge', { ...charge, disputed: true });
    this.#events.tell('charge.dispute.created', dispute, livemode);
    this.#events.tell('charge.dispute.funds_withdrawn', dispute, livemode);
    this.#events.tell('charge.dispute.closed', lost, livemode);
    this.#books.put('dispute', lost);
    return lost;
  }

  #chargeOf(form: Form): ListedCharge {
    const intentId = textIn(form, 'payment_intent');
    const chargeId = intentId === undefined ? textIn(form, 'charge') : undefined;
    if (intentId === undefined && chargeId === undefined)
      throw new Refusal(
        400,
        'One of the following params should be provided for this request: payment_intent or charge.',
      );
    if (intentId !== undefined) this.findIntent(intentId);
    const charge = this.#books
      .list('charge')
      .find((one) => (intentId === undefined ? one.id === chargeId : one.payment_intent === intentId));
    if (charge !== undefined) return charge;
    if (chargeId !== undefined) throw missing('charge', chargeId, 'charge');
    throw new Refusal(400, `This PaymentIntent (${intentId}) does not have a successful charge to refund.`);
  }
}
