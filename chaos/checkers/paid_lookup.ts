// What the checkers of paid orders ask of a history.

import type { PaidHistory, PaidState } from '../paid_history.ts';

export type Order = PaidState['orders'][number];
export type Seat = PaidState['claims'][number];
export type Payment = PaidHistory['books']['payments'][number];

const OPEN_REFUNDS: ReadonlySet<string> = new Set(['due', 'review', 'failed']);

export const keyOf = ({ tenant }: PaidHistory, payment: { id: string }): string => `${tenant}/${payment.id}`;

/** The claims that were bought, or would be: those that stand for others, or else the first ones. */
export function createSeatsOf({ final }: PaidHistory): (orderId: string) => Seat[] {
  const byOrder = new Map<string, Seat[]>();
  for (const claim of final.claims)
    byOrder.set(claim.orderId, [...(byOrder.get(claim.orderId) ?? []), claim]);
  return (orderId) => {
    const all = byOrder.get(orderId) ?? [];
    const late = all.filter(({ replaces }) => replaces !== null);
    return late.length > 0 ? late : all;
  };
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

export const refundedOf = ({ refunds }: Payment): number => sum(refunds.map(({ amount }) => amount));
export const refundedByUs = ({ refunds }: Payment): number =>
  sum(refunds.filter(({ isOurs }) => isOurs).map(({ amount }) => amount));

/** What is still to be given back of a payment. */
export const openRefunds = ({ final }: PaidHistory, key: string): number =>
  sum(
    final.refunds
      .filter((refund) => refund.paymentKey === key && OPEN_REFUNDS.has(refund.state))
      .map(({ amount }) => amount),
  );

/** When something of the tables happened, on the clock of the run. */
export const atOf = ({ startedAtMs }: PaidHistory, epochMs: number): number => epochMs - startedAtMs;
