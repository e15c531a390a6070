// What must be true at the end, to the last ticket and cent. Pure.

import { moneyOf } from '#core/money.ts';
import type { BookedPayment, Books, OrderFacts } from './facts.ts';

export interface Sums {
  readonly orders: number;
  readonly tickets: number;
  /** What the seller keeps, by each of the books. */
  readonly keptAtStripe: number;
  readonly keptInLedger: number;
  readonly received: number;
  readonly refunded: number;
}

export interface Verdict {
  readonly sums: Sums;
  /** What is not as promised; none where all is. */
  readonly problems: readonly string[];
}

export function judgeBooks(books: Books, currency: string): Verdict {
  const sums = sumsOf(books);
  const money = (amount: number) => moneyOf(amount, currency);
  const problems = books.orders.flatMap((order) => orderProblems(order, books, money));
  const check = (isTrue: boolean, problem: string): void => {
    if (!isTrue) problems.push(problem);
  };
  const { levels, seats, price } = books;
  check(
    sums.keptAtStripe === sums.tickets * price,
    `${sums.tickets} tickets are worth ${money(sums.tickets * price)}, and Stripe keeps ${money(sums.keptAtStripe)}`,
  );
  check(
    sums.keptInLedger === sums.keptAtStripe,
    `the ledger keeps ${money(sums.keptInLedger)}, Stripe ${money(sums.keptAtStripe)}`,
  );
  check(
    levels.consumed === sums.tickets && levels.available === seats - sums.tickets && levels.reserved === 0,
    `of ${seats} seats ${levels.consumed} are sold, ${levels.reserved} held and ${levels.available} free, with ${sums.tickets} tickets`,
  );
  check(books.openSessions === 0, `${books.openSessions} sessions can still be paid`);
  return { sums, problems };
}

function sumsOf({ orders, payments }: Books): Sums {
  const sum = <Item>(items: readonly Item[], read: (item: Item) => number) =>
    items.reduce((total, item) => total + read(item), 0);
  const received = sum(payments, (one) => one.received);
  const refunded = sum(payments, (one) => one.refunded);
  return {
    orders: orders.length,
    tickets: sum(orders, ({ ledger }) => ledger.tickets.length),
    received,
    refunded,
    keptAtStripe: received - refunded,
    keptInLedger: sum(orders, ({ ledger }) => sum(ledger.payments, (one) => one.captured - one.refunded)),
  };
}

function orderProblems(
  { intake, ledger }: OrderFacts,
  { payments }: Books,
  money: (amount: number) => string,
): string[] {
  const { order_id, seats, amount } = intake.order;
  const found: string[] = [];
  const say = (problem: string) => found.push(`order ${order_id}: ${problem}`);
  const tickets = ledger.tickets.length;
  if (tickets !== 0 && tickets !== seats) say(`${tickets} tickets for ${seats} seats`);
  const committed = intake.claims.filter(({ state }) => state === 'committed').length;
  if (committed !== tickets) say(`${committed} claims are committed, ${tickets} are tickets`);
  const open = intake.claims.filter(({ state }) => state === 'held' || state === 'queued').length;
  if (open > 0) say(`${open} claims have not ended`);
  const booked = payments.filter((payment) => payment.order_id === order_id);
  const kept = booked.reduce((sum, { received, refunded }) => sum + received - refunded, 0);
  const owed = tickets === 0 ? 0 : amount;
  if (kept !== owed) say(`the seller keeps ${money(kept)} for ${tickets} tickets`);
  for (const payment of booked) found.push(...paymentProblems(payment, ledger, order_id));
  if (ledger.payments.length !== booked.length)
    say(`the ledger has ${ledger.payments.length} payments, Stripe ${booked.length}`);
  if (intake.decisions.length !== booked.length)
    say(`${intake.decisions.length} decisions about ${booked.length} payments`);
  return found;
}

function paymentProblems(
  { id, received, refunded }: BookedPayment,
  ledger: OrderFacts['ledger'],
  orderId: string,
): string[] {
  const known = ledger.payments.find(({ object_id }) => object_id === id);
  if (known === undefined) return [`order ${orderId}: the ledger does not have the payment ${id}`];
  if (known.captured === received && known.refunded === refunded) return [];
  return [
    `payment ${id}: Stripe has ${received} and ${refunded} refunded, the ledger ${known.captured} and ${known.refunded}`,
  ];
}
