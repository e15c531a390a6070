// Short histories, each made for one guard: with the guard they end well, without it a promise breaks. What happens here needs
// several steps in the right order, and random histories come to some of them once in a hundred thousand.

import type { Lane } from '../lanes.ts';
import { end } from './history.ts';
import { GRACE_SEC, LEASE_OVER_SEC, LUCKY, Play, RULES, UNLUCKY } from './play.ts';
import { openDoor, PROCESSES } from './processes.ts';
import { HOLD_SEC, type Rules, UNIT_PRICE } from './rules.ts';
import { World } from './world.ts';

/** Of a payment: something is left. */
const PART = 4;

type Scenario = { rules?: Partial<Rules>; play(play: Play): Promise<void> };

export const SCENARIOS: Record<string, Scenario> = {
  'paid-no-tombstone': {
    async play(play) {
      const order = await play.claim('ann');
      await play.pay(await play.checkout(order));
      await play.deliverAll();
      await play.work('courier');
      const slow = await play.until('bridge', 'takes a message', 'done');
      await play.void(play.claimsOf(order));
      await play.work('courier');
      await play.world.finish(slow);
    },
  },
  'free-before-tombstone': {
    async play(play) {
      const { order } = await play.buy('ann');
      await play.void(play.claimsOf(order));
      await play.work('courier');
    },
  },
  'void-frees-again': {
    rules: { slots: 1 },
    async play(play) {
      const { order } = await play.buy('ann');
      await play.void(play.claimsOf(order));
      await play.work('courier');
      await play.claim('bob');
      await play.void(play.claimsOf(order));
      await play.work('courier');
    },
  },
  'discard-frees-at-once': {
    async play(play) {
      const order = await play.claim('ann');
      await play.pay(await play.checkout(order));
      await play.deliverAll();
      await play.work('courier');
      await play.until('bridge', 'finishes as dead_letter', 'done', UNLUCKY);
      const [letter] = play.world.state.intake.letters;
      await play.world.operate('discard', letter?.id ?? 0);
    },
  },
  // No page is as old as an operator's own list of differences.
  'reconcile-revives': {
    async play(play) {
      const { order } = await play.buy('ann');
      const [ticket] = play.world.state.ledger.tickets;
      await play.void(play.claimsOf(order));
      await play.work('courier');
      await play.world.repair(ticket?.slot ?? '', 'ticket_on_sale', {
        ...{ claim_id: ticket?.claim, user_id: ticket?.user, verified: true },
      });
    },
  },
  'decision-not-kept': {
    async play(play) {
      await play.pay(await play.checkout(await play.claim('ann')));
      await play.deliverAll();
      await play.until('courier', 'settle_payments', 'dies-after');
      await play.pass(LEASE_OVER_SEC);
    },
  },
  'second-payment-funds': {
    async play(play) {
      const order = await play.claim('ann');
      await play.checkout(order);
      await play.pass(HOLD_SEC + GRACE_SEC + 1);
      for (const _ of [1, 2]) {
        play.payByHand('right', order);
        await play.deliverAll();
        await play.work('courier');
      }
    },
  },
  'void-not-kept': {
    async play(play) {
      const payment = await play.pay(await play.checkout(await play.claim('ann')));
      await play.deliverAll();
      await play.until('courier', 'settle_payments', 'dies-before');
      await play.refundOutside(payment, payment.amount);
      await play.work('courier');
      await play.pass(LEASE_OVER_SEC);
      await play.work('courier', 'bridge');
    },
  },
  'refund-voids-order': {
    async play(play) {
      const { order } = await play.buy('ann');
      const second = play.payByHand('right', order);
      await play.deliverAll();
      await play.work('courier');
      await play.refundOutside(second, second.amount);
      await play.work('courier');
    },
  },
  'marked-first': {
    async play(play) {
      await play.pay(await play.checkout(await play.claim('ann')));
      await play.deliverAll();
      await play.until('courier', 'settle_payments', 'dies-before');
    },
  },
  'no-pull': {
    async play(play) {
      await play.pay(await play.checkout(await play.claim('ann')));
      play.loseAll();
      await play.pass(HOLD_SEC + 1);
    },
  },
  'free-before-closing': {
    async play(play) {
      await play.checkout(await play.claim('ann'));
      await play.pass(HOLD_SEC + 1);
    },
  },
  'checkout-unrecorded': {
    async play(play) {
      const door = await play.world.start('door', openDoor(play.world, await play.claim('ann')));
      while (door.next?.what !== 'creates a session') await play.world.step(door, 'done');
      await play.world.step(door, 'dies-after');
      await play.pass(HOLD_SEC + 1);
    },
  },
  'no-create-key': {
    async play(play) {
      const order = await play.claim('ann');
      const door = await play.world.start('door', openDoor(play.world, order));
      while (door.next?.what !== 'creates a session') await play.world.step(door, 'done');
      await play.world.step(door, 'dies-after');
      await play.checkout(order);
      await play.pass(HOLD_SEC + 1);
      await play.work('closer');
      await play.world.expireHolds();
    },
  },
  'complete-ignored': {
    async play(play) {
      await play.pay(await play.checkout(await play.claim('ann')));
      await play.pass(HOLD_SEC + 1);
      await play.work('closer');
      await play.world.expireHolds();
    },
  },
  'grace-unbounded': {
    async play(play) {
      await play.checkout(await play.claim('ann'));
      await play.pass(HOLD_SEC + GRACE_SEC + 1);
    },
  },
  'revive-blindly': {
    rules: { slots: 1 },
    async play(play) {
      const session = await play.checkout(await play.claim('ann'));
      await play.pass(HOLD_SEC + GRACE_SEC + 1);
      await play.claim('bob');
      await play.pay(session);
      await play.deliverAll();
      await play.work('courier');
    },
  },
  'limit-forgotten': {
    rules: { slots: 3, maxPerUser: 2 },
    async play(play) {
      const session = await play.checkout(await play.claim('ann'));
      await play.pass(HOLD_SEC + GRACE_SEC + 1);
      await play.claim('ann', 2);
      await play.pay(session);
      await play.deliverAll();
      await play.work('courier');
    },
  },
  'endpoint-unchecked': {
    async play(play) {
      for (const kind of ['test', 'foreign'] as const) play.payByHand(kind, await play.claim('ann'));
      await play.deliverAll();
      await play.work('courier', 'bridge');
    },
  },
  'amount-unchecked': {
    async play(play) {
      play.payByHand('short', await play.claim('ann'), UNIT_PRICE - 1);
      play.payByHand('over', await play.claim('bob'), UNIT_PRICE + 1);
      await play.deliverAll();
      await play.work('courier', 'bridge');
    },
  },
  // The last part that we give back makes the sum full: the other seat's ticket goes with it, whatever becomes of the webhook.
  'own-refund-untold': {
    async play(play) {
      const { order, payment } = await play.buy('ann', 2);
      await play.refundOutside(payment, UNIT_PRICE);
      await play.void(play.claimsOf(order).slice(0, 1));
      await play.work('courier');
      // The other ticket is worth what is left: an operator has to say so.
      const [refund] = play.world.state.ledger.refunds;
      await play.world.decideRefund(refund?.id ?? '', 'send');
      await play.work('refunder');
      play.loseAll();
    },
  },
  'no-refund-key': {
    async play(play) {
      const { order } = await play.buy('ann', 2);
      await play.void(play.claimsOf(order).slice(0, 1));
      await play.work('courier');
      await play.until('refunder', 'refunds', 'dies-after');
      await play.pass(LEASE_OVER_SEC);
      await play.work('refunder');
    },
  },
  'any-loss-voids': {
    async play(play) {
      const { payment } = await play.buy('ann');
      await play.lose(payment, PART);
      await play.work('courier');
    },
  },
  'open-counts-as-lost': {
    async play(play) {
      const { payment } = await play.buy('ann');
      await play.lose(payment, PART);
      const rest = payment.amount - PART;
      const dispute = await play.dispute(payment, rest);
      await play.work('courier');
      play.world.stripe.closeDispute(payment, dispute, true, rest, false);
      await play.deliverAll();
    },
  },
  'back-not-owed': {
    async play(play) {
      const { payment } = await play.buy('ann');
      const dispute = await play.lose(payment, payment.amount);
      await play.work('courier');
      play.world.stripe.appeal(payment, dispute, payment.amount);
      await play.deliverAll();
    },
  },
  'back-for-a-ticket': {
    async play(play) {
      const { order, payment } = await play.buy('ann', 2);
      const dispute = await play.dispute(payment, payment.amount);
      await play.void(play.claimsOf(order).slice(0, 1));
      await play.work('courier');
      play.world.stripe.closeDispute(payment, dispute, true, payment.amount, false);
      await play.deliverAll();
    },
  },
  'skip-keeps-refunded': {
    rules: { refundBy: 'operator' },
    async play(play) {
      const { order, payment } = await play.buy('ann');
      await play.void(play.claimsOf(order));
      await play.work('courier');
      await play.refundOutside(payment, PART);
      await play.skipAll();
    },
  },
  'kept-though-refunded': {
    rules: { refundBy: 'operator' },
    async play(play) {
      const { order, payment } = await play.buy('ann');
      await play.void(play.claimsOf(order));
      await play.work('courier');
      await play.skipAll();
      await play.refundOutside(payment, payment.amount);
    },
  },
};

/** How many timers a courier keeps that stalls with a row in its hands, and how many when its history is over. */
export async function timersOfStalled(lane: Lane): Promise<{ stalled: number; after: number }> {
  const count = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const world = new World(lane);
  const play = new Play(world);
  await world.reset(RULES);
  await play.pay(await play.checkout(await play.claim('ann')));
  await play.deliverAll();
  const before = count();
  const actor = await world.start('courier', PROCESSES.courier(world, LUCKY));
  while (actor.next !== undefined && actor.next.what !== 'settle_payments') await world.step(actor, 'done');
  const stalled = count() - before;
  world.leave();
  await new Promise((resolve) => setImmediate(resolve));
  return { stalled, after: count() - before };
}

/** Throws the violation where a promise breaks. */
export async function playScenario(lane: Lane, name: string): Promise<readonly string[]> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`unknown scenario ${name}`);
  const world = new World(lane);
  try {
    await world.reset({ ...RULES, ...scenario.rules });
    await scenario.play(new Play(world));
    await end(world);
  } catch (error) {
    Object.assign(error as Error, { history: [...world.history] });
    throw error;
  } finally {
    world.leave();
  }
  return world.history;
}
