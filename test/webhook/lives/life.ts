// One payment's life at Stripe, drawn from a seed: what happens to it, the events that tell so, and what it is worth in the
// end. The books here are Stripe's side of it: they know no rule of ours.

import type { Random } from '../../../chaos/random.ts';
import { Disputes } from './disputes.ts';
import { pay } from './ways.ts';

/** Before 2025-03-31 the part of a hold that is let go is a refund, and an invoice names its payment. */
const VERSIONS = ['2024-06-20', '2025-03-31.basil'] as const;
/** With no, two and three decimals. */
const CURRENCIES = ['usd', 'eur', 'jpy', 'krw', 'kwd', 'bhd'] as const;
const AMOUNT_MAX = 500_000;
export const ACCOUNT = 'acct_connected';

export type StripeObject = Record<string, unknown>;
export type StripeEvent = { id: string; type: string; body: string };
/** Where the buyer is named: on everything, on one kind of object alone, or nowhere. */
export const NAMINGS = ['everywhere', 'session', 'invoice', 'late', 'nowhere'] as const;
export type Naming = (typeof NAMINGS)[number];

export class Life {
  readonly events: StripeEvent[] = [];
  readonly random: Random;
  readonly name: string;
  readonly user: string;
  readonly currency: string;
  /** Its events come in both versions: from the endpoint in one, from a backfill in that of the account. */
  readonly isMixed: boolean;
  /** How the next event is rendered. */
  isOld: boolean;
  readonly account: string | undefined;
  readonly amount: number;
  readonly ids: { intent: string | null; charge: string };
  /** The books: what was captured and not given back, in the payment's currency. */
  captured = 0;
  refunded = 0;
  disputed = 0;
  /** What an old version counts among the refunds although it was only held. */
  released = 0;
  naming: Naming = 'everywhere';
  #second = 1_790_000_000;
  #objects = 0;

  constructor(name: string, random: Random) {
    this.random = random;
    this.name = name;
    this.user = `user_${name}`;
    this.currency = random.pick(CURRENCIES);
    this.isOld = random.chance(0.5);
    this.isMixed = random.chance(0.3);
    this.account = random.chance(0.1) ? ACCOUNT : undefined;
    this.amount = random.between(100, AMOUNT_MAX);
    this.ids = { intent: `pi_${name}`, charge: `ch_${name}` };
  }

  get payment(): string {
    return this.ids.intent ?? this.ids.charge;
  }

  get balance(): number {
    return this.captured - this.refunded + this.disputed;
  }

  /** Most of a life happens within few seconds, often within one. */
  passTime(): void {
    this.#second += this.random.pick([0, 0, 1, 3_600]);
  }

  idOf(kind: string): string {
    return `${kind}_${this.name}_${++this.#objects}`;
  }

  metadata(names: boolean): StripeObject {
    return { metadata: names && this.naming !== 'nowhere' ? { user_id: this.user } : {} };
  }

  tell(type: string, object: StripeObject): void {
    const id = `evt_${this.name}_${this.events.length + 1}`;
    const event = {
      ...{
        id,
        object: 'event',
        type,
        api_version: VERSIONS[this.isOld ? 0 : 1],
        created: this.#second,
        livemode: true,
      },
      ...(this.account && { account: this.account }),
      data: { object },
    };
    this.events.push({ id, type, body: JSON.stringify(event) });
    if (this.isMixed) this.isOld = this.random.chance(0.5);
  }

  intent(status: string): StripeObject {
    const { amount, currency, captured } = this;
    return {
      ...{
        id: this.ids.intent,
        object: 'payment_intent',
        amount,
        currency,
        status,
        amount_received: captured,
      },
      ...this.metadata(this.naming === 'everywhere'),
    };
  }

  /** A charge has the metadata that its payment intent had when it was made. */
  charge(more: StripeObject = {}, names = this.naming === 'everywhere'): StripeObject {
    const { amount, currency, captured, refunded, released } = this;
    return {
      ...{ id: this.ids.charge, object: 'charge', payment_intent: this.ids.intent, amount, currency },
      ...{ status: 'succeeded', paid: true, captured: captured > 0, amount_captured: captured },
      amount_refunded: refunded + (this.isOld ? released : 0),
      ...this.metadata(names),
      ...more,
    };
  }

  tellIntent(type: string, status: string): void {
    if (this.ids.intent !== null) this.tell(`payment_intent.${type}`, this.intent(status));
  }

  refund(id: string, amount: number, status: string): StripeObject {
    const { currency, ids } = this;
    return {
      ...{ id, object: 'refund', amount, currency, status, charge: ids.charge, payment_intent: ids.intent },
      // A note of the support desk, which does not say whose the payment is.
      metadata: this.random.chance(0.2) ? { user_id: 'support' } : {},
    };
  }
}

/** A refund in as many parts as it takes; some fail or are canceled, and their money comes back. */
function refundSome(life: Life): void {
  const { random } = life;
  for (let left = random.pick([0, 0, 1, 1, 2, 3]); left > 0; left--) {
    const rest = life.captured - life.refunded;
    if (rest <= 0) return;
    life.passTime();
    const amount = random.chance(0.3) ? rest : random.between(1, rest);
    const id = life.idOf('re');
    life.refunded += amount;
    const first = random.pick(['pending', 'requires_action', 'succeeded']);
    life.tell('refund.created', life.refund(id, amount, first));
    life.tell('charge.refunded', life.charge());
    if (random.chance(0.5)) life.tell('charge.refund.updated', life.refund(id, amount, 'succeeded'));
    if (!random.chance(0.3)) continue;
    life.passTime();
    life.refunded -= amount;
    const last = random.pick(['failed', 'canceled']);
    life.tell('refund.updated', life.refund(id, amount, last));
    if (last === 'failed') life.tell('refund.failed', life.refund(id, amount, last));
    if (random.chance(0.5)) life.tell('charge.refund.updated', life.refund(id, amount, last));
  }
}

export function drawLife(name: string, random: Random): Life {
  const life = new Life(name, random);
  pay(life);
  if (life.captured > 0) {
    const disputes = new Disputes(life);
    if (random.chance(0.5)) refundSome(life);
    for (let left = random.pick([0, 1, 1, 2]); left > 0; left--) disputes.raise();
    if (random.chance(0.2)) refundSome(life);
  }
  return life;
}
