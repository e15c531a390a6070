// What Stripe's books say: sessions, payments, their refunds and disputes, and what of a payment is left to the seller.

/** As Stripe has it: what is named like this goes over the wire. */
export type Session = {
  id: string;
  object: 'checkout.session';
  status: 'open' | 'complete' | 'expired';
  payment_status: 'paid' | 'unpaid';
  payment_intent: string | null;
  client_reference_id: string;
  metadata: Record<string, string>;
  amount_total: number;
  currency: string;
  created: number;
  expires_at: number;
  url: string;
  livemode: boolean;
  mode: 'payment';
};

export type Refund = {
  id: string;
  object: 'refund';
  payment_intent: string;
  amount: number;
  currency: string;
  /** The buyer's bank may send back what Stripe has sent: then it has failed. */
  status: 'succeeded' | 'failed';
  created: number;
  metadata: Record<string, string>;
};

/** A balance transaction: below zero the bank took money, above it gave some back. */
export type Move = { id: string; amount: number };

/** Stripe calls a dispute lost as soon as a part of its money stays away ("partially won" is what its dashboard says). */
export type Dispute = {
  id: string;
  amount: number;
  status: 'needs_response' | 'won' | 'lost';
  moves: Move[];
};

/** How a payment came about. All but `session` were made by hand. */
export const HAND_MADE = ['right', 'short', 'over', 'other-user', 'unverified', 'test', 'foreign'] as const;
export type Kind = (typeof HAND_MADE)[number] | 'session';

export type Payment = {
  id: string;
  kind: Kind;
  amount: number;
  currency: string;
  /** The order that it names. */
  order: string;
  metadata: Record<string, string>;
  isLive: boolean;
  /** False while a delayed method has not paid. */
  isPaid: boolean;
  hasFailed: boolean;
  isDelayed: boolean;
  refunds: Refund[];
  disputes: Dispute[];
  session: Session | undefined;
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const isOurs = ({ metadata }: Refund): boolean => metadata.sluice_refund !== undefined;
const isOpen = ({ status }: Dispute): boolean => status === 'needs_response';
/** It stays so after an appeal, which only moves money. */
const isLost = ({ status }: Dispute): boolean => status === 'lost';

/** What went back by refunds. */
export const refundedOf = ({ refunds }: Payment): number =>
  sum(refunds.filter(({ status }) => status === 'succeeded').map(({ amount }) => amount));

/** What we refunded ourselves. */
export const refundedByUs = ({ refunds }: Payment): number =>
  refundedOf({ refunds: refunds.filter(isOurs) } as Payment);

const awayBy = (disputes: readonly Dispute[]): number =>
  -sum(disputes.flatMap(({ moves }) => moves.map(({ amount }) => amount)));

/** What disputes took and did not give back. */
export const awayOf = ({ disputes }: Payment): number => awayBy(disputes);

/** What the seller has of it. A dispute takes the whole payment even if a part was refunded before: then it is below zero. */
export const leftOf = (payment: Payment): number => payment.amount - refundedOf(payment) - awayOf(payment);

export const openDispute = ({ disputes }: Payment): Dispute | undefined => disputes.find(isOpen);

/** Nothing of it is left to the seller, by refunds and lost disputes. What an open dispute holds may come back. */
export function isGone(payment: Payment): boolean {
  const lost = payment.disputes.filter(isLost);
  const refunded = refundedOf(payment);
  return refunded >= payment.amount || (lost.length > 0 && payment.amount - refunded - awayBy(lost) <= 0);
}

/**
 * Nothing may have been left of it at some time, by what Stripe had told until then: refunds that failed later count, and all that
 * lost disputes ever took, because what gives money back can be told last.
 */
export function mayHaveGone({ amount, refunds, disputes }: Payment): boolean {
  const taken = disputes.filter(isLost).flatMap(({ moves }) => moves.filter((move) => move.amount < 0));
  const refunded = sum(refunds.map((one) => one.amount));
  return refunded - sum(taken.map((one) => one.amount)) >= amount;
}
