// The books of the stand-in for Stripe in the shape of a history.

import type Stripe from 'stripe';
import type { Delivery, SentEvent, StoredSession } from '../src/stripe_stand_in/books.ts';
import type { StandInClient } from '../src/stripe_stand_in/client.ts';
import { groupBy } from './checkers/lookup.ts';
import type { Books } from './paid_history.ts';

type ToldObject = {
  payment_intent?: string | null;
  amount?: number;
  amount_refunded?: number;
  status?: string;
};
type Told = { type: string; object: ToldObject };

export async function readBooks(stripe: StandInClient): Promise<Books> {
  const [stored, intents, refunds, disputes, events, deliveries] = await Promise.all([
    stripe.books<StoredSession>('session'),
    stripe.books<Stripe.PaymentIntent>('payment_intent'),
    stripe.books<Stripe.Refund>('refund'),
    stripe.books<Stripe.Dispute>('dispute'),
    stripe.books<SentEvent>('event'),
    stripe.books<Delivery>('delivery'),
  ]);
  const delivered = new Set(deliveries.filter(({ state }) => state === 'delivered').map(({ id }) => id));
  const told = groupBy(
    events
      .filter(({ id }) => delivered.has(id))
      .map(({ type, data }): Told => ({ type, object: data.object as ToldObject })),
    ({ object }) => object.payment_intent ?? '',
  );
  const sessions = stored.map(({ session }) => ({
    id: session.id,
    orderId: session.client_reference_id ?? '',
    status: session.status ?? '',
    paymentIntent: (session.payment_intent as string | null) ?? null,
  }));
  const ofSession = new Set(sessions.map(({ paymentIntent }) => paymentIntent));
  const refundsOf = groupBy(
    refunds.filter(({ status }) => status !== 'failed'),
    ({ payment_intent }) => payment_intent as string,
  );
  const lost = new Set(disputes.map(({ payment_intent }) => payment_intent as string));
  return {
    sessions,
    payments: intents.map(({ id, amount, metadata, status }) => {
      const own = (refundsOf.get(id) ?? []).map((refund) => ({
        amount: refund.amount,
        isOurs: refund.metadata?.sluice_refund !== undefined,
      }));
      return {
        ...{ id, amount, orderId: metadata.claim_id ?? null, isPaid: status === 'succeeded' },
        ...{ isLost: lost.has(id), hasSession: ofSession.has(id), refunds: own },
        isUntold: isUntold(told.get(id) ?? [], own, lost.has(id)),
      };
    }),
  };
}

/** What happened outside and no delivered event tells. A charge tells the sum of its refunds, a refund tells itself. */
function isUntold(
  told: readonly Told[],
  refunds: readonly { amount: number; isOurs: boolean }[],
  isLost: boolean,
): boolean {
  const total = refunds.reduce((sum, { amount }) => sum + amount, 0);
  const asTotal = Math.max(0, ...told.map(({ object }) => object.amount_refunded ?? 0));
  const one = told.filter(({ type }) => type === 'refund.created');
  const asSum = one.reduce((sum, { object }) => sum + (object.amount ?? 0), 0);
  const isOutside = refunds.some(({ isOurs }) => !isOurs);
  const isDisputeTold = told.some(
    ({ type, object }) => type.startsWith('charge.dispute.') && object.status === 'lost',
  );
  return (isOutside && Math.max(asTotal, asSum) < total) || (isLost && !isDisputeTold);
}
