// The disputes of one payment: each step moves money by a balance transaction of its own, or moves none.

import type { Life, StripeObject } from './life.ts';

const FEE = 1_500;
const RATE_CHANGE_MAX = 0.03;
/** Units of the account by which a half of a dispute can be told from the whole of it. */
const TELLING = 10;
/** Currencies of the account and what a unit of the payment's currency was worth, by the smallest units of both. */
const SETTLEMENTS = [
  { currency: 'usd', rate: 1.234_5 },
  { currency: 'gbp', rate: 0.853_1 },
  { currency: 'sek', rate: 11.420_7 },
  { currency: 'kwd', rate: 0.093_7 },
] as const;
/** Every way through the states, and which steps move money. */
const COURSES: [event: string, status: string, moves?: 'take' | 'give' | 'part' | 'rest'][][] = [
  [
    ['created', 'warning_needs_response'],
    ['updated', 'warning_under_review'],
    ['closed', 'warning_closed'],
  ],
  [
    ['created', 'prevented'],
    ['closed', 'prevented'],
  ],
  [
    ['created', 'warning_needs_response'],
    ['funds_withdrawn', 'needs_response', 'take'],
    ['updated', 'under_review'],
    ['closed', 'lost'],
  ],
  [
    ['created', 'needs_response', 'take'],
    ['funds_withdrawn', 'needs_response'],
    ['closed', 'won', 'give'],
    ['funds_reinstated', 'won'],
  ],
  [
    ['created', 'needs_response', 'take'],
    ['closed', 'won', 'give'],
    ['funds_withdrawn', 'appeal_needs_response', 'take'],
    ['updated', 'appeal_under_review'],
    ['closed', 'lost'],
  ],
  [
    ['created', 'needs_response', 'take'],
    ['closed', 'lost'],
    ['updated', 'appeal_under_review'],
    ['funds_reinstated', 'won', 'give'],
    ['closed', 'won'],
  ],
  [
    ['funds_withdrawn', 'needs_response', 'take'],
    ['funds_reinstated', 'under_review', 'part'],
    ['closed', 'won', 'rest'],
  ],
  [
    ['funds_withdrawn', 'needs_response', 'take'],
    ['funds_reinstated', 'under_review', 'part'],
    ['closed', 'lost'],
  ],
];

export class Disputes {
  readonly #life: Life;
  readonly #settlement: { currency: string; rate: number } | undefined;

  constructor(life: Life) {
    this.#life = life;
    const other = SETTLEMENTS.filter(({ currency }) => currency !== life.currency);
    this.#settlement = life.random.chance(0.4) ? life.random.pick(other) : undefined;
  }

  raise(): void {
    const life = this.#life;
    const { random, currency, ids } = life;
    const rest = life.balance;
    if (rest <= 1) return;
    const amount = random.chance(0.5) ? rest : random.between(2, rest);
    // Less than a unit of the account is nothing there.
    if (this.#shown(amount) < 1) return;
    const id = life.idOf('dp');
    const transactions: StripeObject[] = [];
    const course = random.pick(COURSES);
    let part = 0;
    for (const [at, [event, status, moves]] of course.entries()) {
      life.passTime();
      if (moves === 'take') this.#move(transactions, -amount);
      if (moves === 'give') this.#move(transactions, amount);
      if (moves === 'part' && this.#canTell(course, amount)) {
        part = Math.floor(amount / 2);
        this.#move(transactions, part);
      }
      if (moves === 'rest') this.#move(transactions, amount - part);
      // The list grows and never shrinks: what one event leaves untold, the next one tells.
      if (at < course.length - 1 && random.chance(0.2)) continue;
      life.tell(`charge.dispute.${event}`, {
        ...{
          id,
          object: 'dispute',
          amount,
          currency,
          status,
          charge: ids.charge,
          payment_intent: ids.intent,
        },
        balance_transactions: random.shuffled(transactions),
        metadata: {},
      });
    }
  }

  /** The rate is that of the day. */
  #move(transactions: StripeObject[], amount: number): void {
    const { random, currency } = this.#life;
    const day = 1 + (random.next() * 2 - 1) * RATE_CHANGE_MAX;
    const settled = this.#settlement && {
      currency: this.#settlement.currency,
      exchange_rate: Number((this.#settlement.rate * day).toFixed(6)),
    };
    const shown = settled ? Math.round(amount * settled.exchange_rate) : amount;
    const fee = amount < 0 ? FEE : 0;
    transactions.push({
      ...{ id: this.#life.idOf('txn'), object: 'balance_transaction', type: 'adjustment', amount: shown },
      ...{ currency, exchange_rate: null, ...settled, fee, net: shown - fee },
    });
    if (random.chance(0.2)) this.#chargeFee(transactions);
    this.#life.disputed += amount;
  }

  /** A fee can be a transaction of its own: it is the account's and not the buyer's. */
  #chargeFee(transactions: StripeObject[]): void {
    const { currency } = this.#settlement ?? this.#life;
    const fee = { object: 'balance_transaction', type: 'stripe_fee', amount: -FEE, currency };
    transactions.push({ id: this.#life.idOf('txn'), ...fee, exchange_rate: null, fee: 0, net: -FEE });
  }

  /**
   * A part of a dispute that is settled in another currency can only be read from its rounded amount. Where a unit there is worth
   * more than one here, that cannot tell it from its neighbours, unless the rest comes too, and a half is not the whole there.
   */
  #canTell(course: (typeof COURSES)[number], amount: number): boolean {
    const isExact = this.#settlement === undefined || this.#settlement.rate * (1 - RATE_CHANGE_MAX) > 1;
    return isExact || (course.some(([, , moves]) => moves === 'rest') && this.#shown(amount) > TELLING);
  }

  /** About what it is in the currency of the account, and no more. */
  #shown(amount: number): number {
    return Math.floor(amount * (this.#settlement?.rate ?? 1) * (1 - RATE_CHANGE_MAX));
  }
}
