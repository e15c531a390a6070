// What Stripe and its network do: deliver, deliver again, lose, deliver to the wrong endpoint; refunds outside, and refunds that fail.

import fc from 'fast-check';
import { pick, step } from '../../step.ts';
import { leftOf, type Payment, type Refund } from '../books.ts';
import type { Delivery } from '../stripe.ts';
import type { World } from '../world.ts';
import { anyNumber, type Command } from './buyers.ts';

/** So little that something is left of every payment. */
const PART = 3;

const nameOf = ({ event }: Delivery): string => `${event.type} of ${subjectOf(event.data.object)}`;
const subjectOf = ({ payment_intent, id }: Record<string, unknown>): string => String(payment_intent ?? id);

export const deliver: Command = fc.tuple(anyNumber, fc.integer({ min: 0, max: 3 })).map(([at, again]) =>
  step(
    `deliver ${at}`,
    ({ stripe }) => stripe.deliveries.length > 0,
    (_, world) => deliverAt(world, at % world.stripe.deliveries.length, again === 0),
  ),
);

/** Stripe comes again with what was answered "not now"; `isKept`: it comes again whatever was answered. */
export async function deliverAt(world: World, at: number, isKept: boolean): Promise<void> {
  const { deliveries } = world.stripe;
  const delivery = pick(deliveries, at);
  world.doing(`${nameOf(delivery)} is delivered to ${delivery.endpoint}`);
  const outcome = await world.deliver(delivery);
  world.got(outcome);
  const isTaken = outcome === 'success' || outcome === 'skipped';
  // At a foreign endpoint a refund never finds its payment.
  if ((isTaken && !isKept) || delivery.endpoint === 'other')
    deliveries.splice(deliveries.indexOf(delivery), 1);
}

const losable = ({ stripe }: World): Delivery[] => stripe.deliveries.filter(({ mayBeLost }) => mayBeLost);

export const lose: Command = anyNumber.map((at) =>
  step(
    `lose ${at}`,
    (world) => losable(world).length > 0,
    async (_, world) => {
      const delivery = pick(losable(world), at);
      const { deliveries } = world.stripe;
      deliveries.splice(deliveries.indexOf(delivery), 1);
      world.doing(`${nameOf(delivery)} is lost for ever`);
    },
  ),
);

export const misdeliver: Command = anyNumber.map((at) =>
  step(
    `misdeliver ${at}`,
    ({ stripe }) => stripe.deliveries.length > 0,
    async (_, world) => {
      const delivery = pick(world.stripe.deliveries, at);
      world.doing(`${nameOf(delivery)} will be delivered to another tenant's endpoint as well`);
      world.stripe.deliveries.push({ ...delivery, endpoint: 'other', mayBeLost: true });
    },
  ),
);

export const arrive: Command = anyNumber.map((at) =>
  step(
    `arrive ${at}`,
    ({ late }) => late.length > 0,
    async (_, world) => {
      const index = at % world.late.length;
      world.doing(`a call that was given up arrives at Stripe: ${world.late[index]?.what}`);
      world.got(await world.arrive(index));
    },
  ),
);

/** Payments that an operator can see in Stripe's dashboard, as money of the seller. */
export const isSettled = ({ isPaid, isLive, kind }: Payment): boolean =>
  isPaid && isLive && kind !== 'foreign';

const refundable = ({ stripe }: World): Payment[] =>
  stripe.payments.filter((one) => isSettled(one) && leftOf(one) > 0);

export const refundOutside: Command = fc.tuple(anyNumber, fc.integer({ min: 0, max: 4 })).map(([at, how]) =>
  step(
    `refund ${at} outside`,
    (world) => refundable(world).length > 0,
    async (_, world) => {
      const payment = pick(refundable(world), at);
      const left = leftOf(payment);
      const amount = how < 3 ? left : Math.min(left, PART);
      world.doing(`${payment.id}: ${amount} of ${payment.amount} are refunded in Stripe's dashboard`);
      world.stripe.refundOutside(payment, amount, world.rules.toldBy);
    },
  ),
);

type Sent = { payment: Payment; refund: Refund };

/** Refunds that buyers have, ours too. */
const sent = ({ stripe }: World): Sent[] =>
  stripe.payments.flatMap((payment) =>
    payment.refunds.filter(({ status }) => status === 'succeeded').map((refund) => ({ payment, refund })),
  );

export const failRefund: Command = anyNumber.map((at) =>
  step(
    `the refund ${at} fails`,
    (world) => sent(world).length > 0,
    async (_, world) => {
      const { payment, refund } = pick(sent(world), at);
      const whose = refund.metadata.sluice_refund === undefined ? 'from the dashboard' : 'of ours';
      world.doing(`${payment.id}: the bank sends a refund ${whose} of ${refund.amount} back`);
      world.stripe.failRefund(payment, refund);
    },
  ),
);
