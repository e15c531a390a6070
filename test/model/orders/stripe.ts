// Stripe in memory: its sessions, payments, refunds and keys, as its books have them, and the events that it would deliver.
// It mirrors what the design's own model of Stripe does. Time stands still here too: `advance` moves everything into the past.

import { type Dispute, type Kind, leftOf, type Payment, type Refund, type Session } from './books.ts';
import {
  chargeRefundedEvent,
  completedEvent,
  disputeEvent,
  paidEvent,
  refundEvent,
  type StripeEvent,
} from './stripe_events.ts';

/** A session must expire at least so long after it was made: what comes later than its creator thought is refused. */
const SHORTEST_SESSION_SEC = 30 * 60;
/** Stripe promises a day. Longer than any fence of ours, and short enough for histories in which it has forgotten. */
const KEYS_KEPT_SEC = 3 * 60 * 60;
const MS_PER_SEC = 1_000;
const MOMENT_SEC = 0.001;

/** One delivery that Stripe has to make. atSec is when it happened: it moves into the past, what the event says does not. */
export type Delivery = {
  event: StripeEvent;
  atSec: number;
  endpoint: 'stripe' | 'other';
  mayBeLost: boolean;
};

export type CreateParams = {
  client_reference_id: string;
  expires_at: number;
  metadata: Record<string, string>;
  line_items: { quantity: number; price_data: { currency: string; unit_amount: number } }[];
};

/** What Stripe says no to, as its HTTP API does. */
export class StripeRefusal extends Error {
  readonly statusCode = 400;
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export class Stripe {
  readonly sessions: Session[] = [];
  readonly payments: Payment[] = [];
  readonly deliveries: Delivery[] = [];
  readonly #keys = new Map<string, { print: string; answer: unknown; atSec: number }>();
  /** Stands in every id. */
  readonly #run: string;
  readonly #skewSec: number;
  readonly #forgetsKeys: (kind: string) => boolean;
  #serial = 0;
  /** When it last had something to tell. */
  #toldAtSec = 0;
  /** How far `advance` has moved everything in all. */
  passedSec = 0;

  constructor(run: string, skewSec: number, forgetsKeys: (kind: string) => boolean) {
    this.#run = run;
    this.#skewSec = skewSec;
    this.#forgetsKeys = forgetsKeys;
  }

  nowSec(): number {
    return Math.floor(Date.now() / MS_PER_SEC) + this.#skewSec;
  }

  advance(seconds: number): void {
    this.passedSec += seconds;
    for (const session of this.sessions) {
      session.expires_at -= seconds;
      session.created -= seconds;
    }
    for (const key of this.#keys.values()) key.atSec -= seconds;
    for (const delivery of this.deliveries) delivery.atSec -= seconds;
    this.#toldAtSec -= seconds;
    this.#lapse();
  }

  #lapse(): void {
    for (const session of this.sessions)
      if (session.status === 'open' && session.expires_at <= this.nowSec()) session.status = 'expired';
  }

  #id(kind: string): string {
    return `${kind}_${this.#run}${++this.#serial}`;
  }

  /** A key that is known has its answer for a while, and never another request's. A refusal is not kept. */
  #once<Answer>(kind: string, key: string, print: string, make: () => Answer): Answer {
    const known = this.#keys.get(key);
    if (known && known.atSec + KEYS_KEPT_SEC > this.nowSec() && !this.#forgetsKeys(kind)) {
      if (known.print !== print)
        throw new Error(`Stripe was given the key ${key} with other parameters: ${known.print} and ${print}`);
      return structuredClone(known.answer) as Answer;
    }
    const answer = make();
    this.#keys.set(key, { print, answer: structuredClone(answer), atSec: this.nowSec() });
    return answer;
  }

  create(params: CreateParams, key: string): Session {
    // The model moves expires_at with its clock, so it is not compared.
    const { expires_at, ...others } = params;
    return this.#once('create', key, JSON.stringify(others), () => {
      if (expires_at < this.nowSec() + SHORTEST_SESSION_SEC)
        throw new StripeRefusal('parameter_invalid', 'expires_at is less than 30 minutes from now');
      const [line] = params.line_items;
      const id = this.#id('cs');
      const session: Session = {
        id,
        object: 'checkout.session',
        ...{
          status: 'open',
          payment_status: 'unpaid',
          payment_intent: null,
          mode: 'payment',
          livemode: true,
        },
        client_reference_id: params.client_reference_id,
        metadata: params.metadata,
        amount_total: params.line_items.reduce(
          (sum, one) => sum + one.quantity * one.price_data.unit_amount,
          0,
        ),
        currency: line?.price_data.currency ?? '',
        created: this.nowSec(),
        expires_at,
        url: `https://checkout.example/${id}`,
      };
      this.sessions.push(session);
      return { ...session };
    });
  }

  session(id: string): Session {
    this.#lapse();
    const found = this.sessions.find((session) => session.id === id);
    if (found === undefined) throw new StripeRefusal('resource_missing', `no such session ${id}`);
    return { ...found };
  }

  /** Newest first, as Stripe lists them. */
  sessionsSince(createdSec: number): Session[] {
    this.#lapse();
    return this.sessions.filter(({ created }) => created >= createdSec).reverse();
  }

  expire(id: string): Session {
    this.#lapse();
    const found = this.sessions.find((session) => session.id === id);
    if (found === undefined) throw new StripeRefusal('resource_missing', `no such session ${id}`);
    if (found.status !== 'open')
      throw new StripeRefusal('', `only sessions that are open can be expired; this one is ${found.status}`);
    found.status = 'expired';
    return { ...found };
  }

  payment(id: string): Payment {
    const found = this.payments.find((payment) => payment.id === id);
    if (found === undefined) throw new StripeRefusal('resource_missing', `no such payment ${id}`);
    return found;
  }

  refund(
    params: { payment_intent: string; amount: number; metadata: Record<string, string> },
    key: string,
  ): Refund {
    return this.#once('refund', key, JSON.stringify(params), () => {
      const payment = this.payment(params.payment_intent);
      const left = leftOf(payment);
      if (left <= 0 && payment.disputes.length > 0)
        throw new StripeRefusal('charge_disputed', 'the charge has been charged back');
      if (left <= 0) throw new StripeRefusal('charge_already_refunded', 'the charge is already refunded');
      if (params.amount > left)
        throw new StripeRefusal('', `the refund (${params.amount}) is greater than what is left (${left})`);
      const refund = this.#book(payment, params.amount, params.metadata);
      this.#tell(chargeRefundedEvent(this.#id('evt'), payment, this.nowSec()), true);
      this.#tell(refundEvent(this.#id('evt'), 'created', payment, refund, this.nowSec()), true);
      return refund;
    });
  }

  refundsOf(id: string): Refund[] {
    return this.payment(id).refunds.map((refund) => ({ ...refund }));
  }

  #book(payment: Payment, amount: number, metadata: Record<string, string>): Refund {
    const { id, currency } = payment;
    const refund: Refund = {
      ...{ id: this.#id('re'), object: 'refund', payment_intent: id, amount, currency, status: 'succeeded' },
      ...{ created: this.nowSec(), metadata },
    };
    payment.refunds.push(refund);
    return refund;
  }

  #tell(event: StripeEvent, mayBeLost: boolean, endpoint: Delivery['endpoint'] = 'stripe'): void {
    // No two events at one time: which of two totals of refunds is newer could not be told.
    this.#toldAtSec = Math.max(Date.now() / MS_PER_SEC + this.#skewSec, this.#toldAtSec + MOMENT_SEC);
    this.deliveries.push({ event, atSec: this.#toldAtSec, endpoint, mayBeLost });
  }

  /** The buyer pays on Stripe's page, now or by a method that pays later. False where the session takes no money. */
  pay(session: Session, isDelayed: boolean): Payment | undefined {
    this.#lapse();
    if (session.status !== 'open') return undefined;
    const payment = this.#newPayment(
      'session',
      session.client_reference_id,
      session.amount_total,
      session.metadata,
    );
    session.status = 'complete';
    session.payment_intent = payment.id;
    Object.assign(payment, { isDelayed, isPaid: false, session, currency: session.currency });
    if (isDelayed) this.#tell(completedEvent(this.#id('evt'), session, 'completed', this.nowSec()), true);
    else this.#succeed(payment, session, 'completed');
    return payment;
  }

  /** What a delayed method comes to. */
  conclude(payment: Payment, succeeds: boolean): void {
    const { session } = payment;
    if (session === undefined || payment.isPaid || payment.hasFailed) return;
    if (succeeds) this.#succeed(payment, session, 'async_payment_succeeded');
    else {
      payment.hasFailed = true;
      this.#tell(completedEvent(this.#id('evt'), session, 'async_payment_failed', this.nowSec()), true);
    }
  }

  #succeed(payment: Payment, session: Session, how: 'completed' | 'async_payment_succeeded'): void {
    payment.isPaid = true;
    session.payment_status = 'paid';
    this.#tell(completedEvent(this.#id('evt'), session, how, this.nowSec()), true);
    this.#tell(paidEvent(this.#id('evt'), payment, this.nowSec()), true);
  }

  #newPayment(kind: Kind, order: string, amount: number, metadata: Record<string, string>): Payment {
    const payment: Payment = {
      ...{ id: this.#id('pi'), kind, amount, currency: 'eur', order, metadata, isLive: kind !== 'test' },
      ...{ isPaid: true, hasFailed: false, isDelayed: false, refunds: [], disputes: [], session: undefined },
    };
    this.payments.push(payment);
    return payment;
  }

  /** A payment that a server of the seller's own made. */
  payByHand(kind: Kind, order: string, amount: number, metadata: Record<string, string>): Payment {
    const payment = this.#newPayment(kind, order, amount, metadata);
    this.#tell(
      paidEvent(this.#id('evt'), payment, this.nowSec()),
      false,
      kind === 'foreign' ? 'other' : 'stripe',
    );
    return payment;
  }

  /** In Stripe's dashboard. One event of it is told again and again until it is taken; the others may be lost. */
  refundOutside(payment: Payment, amount: number, toldBy: 'charge' | 'refund'): void {
    const refund = this.#book(payment, amount, {});
    this.#tell(refundEvent(this.#id('evt'), 'created', payment, refund, this.nowSec()), toldBy === 'charge');
    this.#tell(chargeRefundedEvent(this.#id('evt'), payment, this.nowSec()), toldBy === 'refund');
  }

  /** The buyer's bank sends it back, days later. */
  failRefund(payment: Payment, refund: Refund): void {
    refund.status = 'failed';
    this.#tell(refundEvent(this.#id('evt'), 'updated', payment, refund, this.nowSec()), true);
    this.#tell(refundEvent(this.#id('evt'), 'failed', payment, refund, this.nowSec()), false);
  }

  /** The buyer's bank takes money: all of it even where a part was refunded. */
  openDispute(payment: Payment, amount: number): Dispute {
    const dispute: Dispute = { id: this.#id('dp'), amount, status: 'needs_response', moves: [] };
    payment.disputes.push(dispute);
    this.#tellDispute('created', payment, dispute, true);
    this.#moveBack(payment, dispute, -amount);
    return dispute;
  }

  /** The bank decides, and gives so much back. Stripe may say so before the money is there. */
  closeDispute(payment: Payment, dispute: Dispute, isWon: boolean, back: number, isToldFirst: boolean): void {
    dispute.status = isWon ? 'won' : 'lost';
    if (isToldFirst) this.#tellDispute('closed', payment, dispute, false);
    this.#moveBack(payment, dispute, back);
    if (!isToldFirst) this.#tellDispute('closed', payment, dispute, false);
  }

  /** A dispute that was lost gives something back after all. */
  appeal(payment: Payment, dispute: Dispute, back: number): void {
    this.#moveBack(payment, dispute, back);
  }

  #moveBack(payment: Payment, dispute: Dispute, amount: number): void {
    if (amount === 0) return;
    dispute.moves.push({ id: this.#id('txn'), amount });
    this.#tellDispute(amount < 0 ? 'funds_withdrawn' : 'funds_reinstated', payment, dispute, false);
  }

  #tellDispute(name: string, payment: Payment, dispute: Dispute, mayBeLost: boolean): void {
    this.#tell(disputeEvent(this.#id('evt'), name, payment, dispute, this.nowSec()), mayBeLost);
  }
}
