// Stripe in memory as the product's own port asks for it: in the shape of the package `stripe`, each call by itself.

import type { StripeClient } from '#core/orders/stripe.ts';
import type { Ask } from './actors.ts';
import type { Refund } from './books.ts';
import type { CreateParams } from './stripe.ts';
import type { World } from './world.ts';

type RefundParams = { payment_intent: string; amount: number; metadata: Record<string, string> };

export function stripeClient({ stripe, breaks }: World, ask: Ask): StripeClient {
  const call = <Answer extends object>(what: string, make: () => Answer): Promise<Answer> =>
    // A copy, as the wire makes one; what Stripe does later does not reach who has asked before.
    ask('stripe', what, async () => structuredClone(make()));
  async function* listed<Item extends object>(what: string, make: () => Item[]): AsyncGenerator<Item> {
    yield* await call(what, make);
  }
  const intent = (id: string) => {
    const { isPaid, hasFailed, amount } = stripe.payment(id);
    const status = isPaid ? 'succeeded' : hasFailed ? 'requires_payment_method' : 'processing';
    return { id, object: 'payment_intent', status, amount, amount_received: isPaid ? amount : 0 };
  };
  return {
    checkout: {
      sessions: {
        create: (params, { idempotencyKey }) => {
          const given = params as CreateParams;
          const { passedSec } = stripe;
          // On its way it moves into the past like everything else.
          const moved = () => given.expires_at - (stripe.passedSec - passedSec);
          return call('creates a session', () =>
            stripe.create({ ...given, expires_at: moved() }, idempotencyKey),
          );
        },
        retrieve: (id) => call('reads a session', () => stripe.session(id)),
        expire: (id) => call('expires a session', () => stripe.expire(id)),
        list: ({ created }) => listed('lists sessions', () => stripe.sessionsSince(created.gte)),
      },
    },
    paymentIntents: { retrieve: (id) => call('reads a payment', () => intent(id)) },
    charges: { retrieve: () => Promise.reject(new Error('no payment here is a charge')) },
    refunds: {
      create: (params, { idempotencyKey }) =>
        call<Refund>('refunds', () => stripe.refund(params as RefundParams, idempotencyKey)),
      list: (params) =>
        // A control does without the look.
        listed('lists refunds', () =>
          breaks.has('no-refund-key')
            ? []
            : stripe.refundsOf((params as { payment_intent: string }).payment_intent),
        ),
    },
  };
}
