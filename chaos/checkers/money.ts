// I14: each payment for an order is tickets, or given back, or due, or kept by an operator's word; never two of these.

import type { PaidHistory } from '../paid_history.ts';
import type { Checker } from './lookup.ts';
import { keyOf, openRefunds, type Payment, refundedByUs, refundedOf, sum } from './paid_lookup.ts';

export const moneyIsAccountedFor: Checker = ({ paid }) =>
  paid === undefined
    ? []
    : [...unknownPayments(paid), ...unfinished(paid), ...paid.books.payments.flatMap(judge(paid))];

/** What the ledger knows and Stripe does not. */
function unknownPayments({ tenant, final, books }: PaidHistory): string[] {
  const known = new Set(books.payments.map(({ id }) => `${tenant}/${id}`));
  return final.payments
    .filter(({ paymentKey }) => !known.has(paymentKey))
    .map(({ paymentKey }) => `payment ${paymentKey} is in the ledger, and Stripe never took it`);
}

function unfinished({ final }: PaidHistory): string[] {
  return final.outbox.filter(({ state }) => state !== 'done').map(({ id }) => `${id} was never carried out`);
}

const judge =
  (paid: PaidHistory) =>
  (payment: Payment): string[] => {
    const { final } = paid;
    const key = keyOf(paid, payment);
    const due = sum(final.refunds.filter(({ paymentKey }) => paymentKey === key).map(({ amount }) => amount));
    const ours = refundedByUs(payment);
    const tickets = ticketsOf(paid, key);
    const found = [
      ...(refundedOf(payment) > payment.amount ? [`${payment.id} was refunded more than was paid`] : []),
      ...(ours > due ? [`${payment.id}: we refunded ${ours}, and ${due} were due`] : []),
      ...(tickets + ours > payment.amount ? [`${payment.id} has its tickets and our refund`] : []),
      ...(!payment.isPaid && (tickets > 0 || due > 0) ? [`${payment.id} was never paid, and counts`] : []),
    ];
    return found.length > 0 || !payment.isPaid ? found : judgeAtRest(paid, payment, key, tickets);
  };

/** What the tickets that it bought are worth. */
function ticketsOf({ final }: PaidHistory, key: string): number {
  const bought = new Map(
    final.orders
      .filter(({ paymentKey }) => paymentKey === key)
      .map((order) => [order.orderId, order.unitPrice]),
  );
  return sum(final.tickets.map(({ orderId }) => bought.get(orderId ?? '') ?? 0));
}

function judgeAtRest(paid: PaidHistory, payment: Payment, key: string, tickets: number): string[] {
  const { final } = paid;
  const isTold = final.payments.some(({ paymentKey }) => paymentKey === key);
  // A server of the seller's own made it, and no event ever came.
  if (payment.orderId === null || payment.isUntold || (!isTold && !payment.hasSession)) return [];
  if (!isTold) return [`${payment.id} was paid on our page, and the ledger does not know it`];
  const refunded = refundedOf(payment);
  if (payment.isLost || refunded >= payment.amount)
    return tickets > 0 ? [`${payment.id} was given back, and its tickets live`] : [];
  const open = openRefunds(paid, key);
  const credits = final.credits.filter(({ paymentKey }) => paymentKey === key);
  const kept = -sum(credits.filter(({ kind }) => kind === 'forfeit').map(({ amount }) => amount));
  const ours = refundedByUs(payment);
  const outside = refunded - ours;
  const total = tickets + ours + open + kept;
  const balance = sum(credits.map(({ amount }) => amount));
  return [
    // What was refunded in part outside cannot be told apart from what is due.
    ...(total === payment.amount || (outside > 0 && total + outside >= payment.amount)
      ? []
      : [
          `${payment.id} took ${payment.amount}: tickets ${tickets}, refunded by us ${ours}, outside ${outside}, due ${open}, kept ${kept}`,
        ]),
    ...(tickets > 0 && open > 0 ? [`${payment.id} has tickets and a refund due`] : []),
    ...(outside === 0 && balance !== open
      ? [`the credits of ${payment.id} come to ${balance}, and ${open} are due`]
      : []),
  ];
}
