// What buyers do: claim, go to Stripe's page, pay there now or later, give back.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, preferred, step } from '../../step.ts';
import { anyFate } from '../actors.ts';
import { HAND_MADE, type Session } from '../books.ts';
import { openDoor } from '../processes.ts';
import { AUTO_POOL, PAY_POOL, UNIT_PRICE } from '../rules.ts';
import { type OrderState, seatsOf } from '../state.ts';
import type { World } from '../world.ts';

export type Command = Arbitrary<AsyncCommand<World, World>>;

const USERS = ['ann', 'bob', 'cy'];
const STRANGER = 'mallory';
const NOBODYS_ORDER = '00000000-0000-7000-8000-00000000dead';
/** What is wrong with an amount, in cents. */
const OFF_BY = 3;

export const anyNumber = fc.nat(11);
const anyUser = fc.constantFrom(...USERS);

export const claim: Command = fc.tuple(anyUser, fc.constantFrom(1, 1, 2)).map(([user, quantity]) =>
  step(
    `${user} claims ${quantity}`,
    () => true,
    async (_, world) => {
      world.doing(`${user} claims ${quantity}`);
      world.got(await world.claim(PAY_POOL, user, quantity));
    },
  ),
);

export const claimAuto: Command = anyUser.map((user) =>
  step(
    `${user} claims without payment`,
    () => true,
    async (_, world) => {
      world.doing(`${user} claims without payment`);
      world.got(await world.claim(AUTO_POOL, user, 1));
    },
  ),
);

/** Orders that may still be paid for, where there are any. */
const payable = ({ state }: World): readonly OrderState[] =>
  preferred(state.intake.orders, ({ holdSec, paymentKey }) => paymentKey === null && (holdSec ?? 0) > 0);

/** The door of a checkout comes so far. */
export const checkout: Command = fc
  .tuple(anyNumber, fc.constantFrom(3, 3, 3, 2, 1, 0), anyFate)
  .map(([at, steps, fate]) =>
    step(
      `checkout ${at} for ${steps} and ${fate}`,
      ({ state }) => state.intake.orders.length > 0,
      async (_, world) => {
        const order = pick(payable(world), at);
        world.doing(`${order.user} wants to pay ${world.name(order.id, 'order ')}`);
        await world.go(
          await world.start(`door ${world.history.length}`, openDoor(world, order)),
          steps,
          fate,
        );
      },
    ),
  );

const openSessions = (world: World): Session[] =>
  world.stripe.sessions.filter(({ status }) => status === 'open');

export const pay: Command = fc.tuple(anyNumber, fc.integer({ min: 0, max: 9 })).map(([at, method]) =>
  step(
    `pay ${at}`,
    (world) => openSessions(world).length > 0,
    async (_, world) => payAt(world, pick(openSessions(world), at), method === 0),
  ),
);

/** A buyer whose bank takes its time. */
export const payLater: Command = anyNumber.map((at) =>
  step(
    `pay ${at} by a slow method`,
    (world) => openSessions(world).length > 0,
    async (_, world) => payAt(world, pick(openSessions(world), at), true),
  ),
);

export async function payAt(world: World, session: Session, isDelayed: boolean): Promise<void> {
  const order = session.client_reference_id;
  world.doing(`${session.id} is paid${isDelayed ? ' by a slow method' : ''}`);
  const payment = world.stripe.pay(session, isDelayed);
  world.got(payment?.id ?? 'it has expired');
  if (payment !== undefined) world.sessionPaid(order);
}

export const conclude: Command = fc.tuple(anyNumber, fc.integer({ min: 0, max: 2 })).map(([at, luck]) =>
  step(
    `the bank answers ${at}`,
    ({ stripe }) => stripe.payments.some(({ isPaid, hasFailed }) => !isPaid && !hasFailed),
    async (_, world) => {
      const waiting = world.stripe.payments.filter(({ isPaid, hasFailed }) => !isPaid && !hasFailed);
      const payment = pick(waiting, at);
      world.doing(`the bank says ${luck > 0 ? 'yes' : 'no'} to ${payment.id}`);
      world.stripe.conclude(payment, luck > 0);
    },
  ),
);

/** A payment that a server of the seller's own made, for an order of ours or for one that does not exist. */
export const payByHand: Command = fc
  .tuple(anyNumber, fc.constantFrom(...HAND_MADE, 'right' as const), fc.integer({ min: 0, max: 6 }))
  .map(([at, kind, isUnknown]) =>
    step(
      `a payment by hand, ${kind}`,
      () => true,
      async (_, world) => {
        const { orders } = world.state.intake;
        const order = isUnknown === 0 || orders.length === 0 ? undefined : pick(orders, at);
        const id = order?.id ?? NOBODYS_ORDER;
        const seats = order === undefined ? 1 : seatsOf(world.state, id).length;
        const off = kind === 'short' ? -OFF_BY : kind === 'over' ? OFF_BY : 0;
        const payment = world.stripe.payByHand(kind, id, seats * UNIT_PRICE + off, {
          claim_id: id,
          user_id: kind === 'other-user' || order === undefined ? STRANGER : order.user,
          pool_id: PAY_POOL,
          verified: kind === 'unverified' ? 'false' : 'true',
        });
        world.doing(`a payment by hand, ${kind}, for ${world.name(id, 'order ')} → ${payment.id}`);
      },
    ),
  );

export const release: Command = anyNumber.map((at) =>
  step(
    `release ${at}`,
    ({ state }) => state.intake.orders.length > 0,
    async (_, world) => {
      const order = pick(world.state.intake.orders, at);
      world.doing(`${order.user} gives ${world.name(order.id, 'order ')} back`);
      world.got(await world.release(order.id, order.user));
    },
  ),
);
