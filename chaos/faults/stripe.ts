// Faults of Stripe, by the switches of its stand-in.

import type { SwitchSettings } from '../../src/stripe_stand_in/switches.ts';
import type { FaultKind } from './kind.ts';

type Change = Partial<SwitchSettings>;

/** Two of them may go on at once: each switches what is its own. */
const fault = (part: string, begin: (target: string) => Change, heal: Change): FaultKind => ({
  touches: () => 'checkout',
  partsOf: () => [part],
  async begin({ stripe }, { target }) {
    await stripe.set(begin(target));
    return async () => void (await stripe.set(heal));
  },
});

/** Connections are cut before anything has read the request. */
export const stripeDown = fault('stripe', () => ({ down: true }), { down: false });
export const stripeSlow = fault('stripe-speed', (target) => ({ slowMs: Number.parseInt(target, 10) }), {
  slowMs: 0,
});
/** What was asked is done, and the answer never arrives. */
export const stripeCut = fault('stripe', () => ({ cut: true }), { cut: false });
/** Events of this time are never delivered. */
export const webhookDropped = fault('stripe-webhooks', () => ({ webhooks: 'dropped' }), { webhooks: 'on' });
export const stripeClock = fault(
  'stripe-clock',
  (target) => ({ clockOffsetSec: Number.parseInt(target, 10) }),
  { clockOffsetSec: 0 },
);
