// Short histories, each made for one guard: with the guard they end well, without it a promise breaks. What happens here needs
// several steps in the right order, and random histories come to some of them once in a hundred thousand.

import type { Lane } from '../lanes.ts';
import type { Actor, Fate } from './actors.ts';
import type { Dispute, Kind, Payment, Session } from './books.ts';
import { payAt } from './commands/buyers.ts';
import { deliverAt } from './commands/provider.ts';
import { end, exhaust } from './history.ts';
import { openDoor, PROCESSES, type ProcessName } from './processes.ts';
import type { OrderState } from './state.ts';
import { HOLD_SEC, PAY_POOL, type Rules, UNIT_PRICE, World } from './world.ts';

const GRACE_SEC = 60;
const RULES: Rules = {
  slots: 2,
  maxPerUser: null,
  graceSec: GRACE_SEC,
  skewSec: 0,
  bought: 'none',
  refundBy: 'sluice',
  toldBy: 'charge',
};
/** Longer than a worker's lease, shorter than what is left of a hold. */
const LEASE_OVER_SEC = 120;
/** Of a payment: something is left. */
const PART = 4;
const LUCKY = 9;
const UNLUCKY = 0;

class Play {
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  async claim(user: string, quantity = 1): Promise<OrderState> {
    const before = new Set(this.world.state.intake.orders.map(({ id }) => id));
    this.world.doing(`${user} claims ${quantity}`);
    this.world.got(await this.world.claim(PAY_POOL, user, quantity));
    const order = this.world.state.intake.orders.find(({ id }) => !before.has(id));
    if (order === undefined) throw new Error(`${user} has no order`);
    return order;
  }

  async checkout(order: OrderState): Promise<Session> {
    await this.world.finish(await this.world.start('door', openDoor(this.world, order)));
    return this.session();
  }

  session(): Session {
    const session = this.world.stripe.sessions.at(-1);
    if (session === undefined) throw new Error('no session yet');
    return session;
  }

  async pay(session: Session): Promise<Payment> {
    await payAt(this.world, session, false);
    return this.payment();
  }

  payment(): Payment {
    const payment = this.world.stripe.payments.at(-1);
    if (payment === undefined) throw new Error('no payment yet');
    return payment;
  }

  payByHand(kind: Kind, order: OrderState, amount = order.seats * UNIT_PRICE): Payment {
    const metadata = { claim_id: order.id, user_id: order.user, pool_id: PAY_POOL, verified: 'true' };
    return this.world.stripe.payByHand(kind, order.id, amount, metadata);
  }

  async deliverAll(): Promise<void> {
    while (this.world.stripe.deliveries.length > 0) await deliverAt(this.world, 0, false);
  }

  loseAll(): void {
    this.world.doing('all that Stripe has to deliver is lost');
    this.world.stripe.deliveries.length = 0;
  }

  /** Until it finds nothing more. */
  async work(...names: ProcessName[]): Promise<void> {
    for (const name of names) await exhaust(this.world, name);
  }

  /** So many calls of a process, and then this happens to the next one. */
  async until(name: ProcessName, what: string, fate: Fate, luck = LUCKY): Promise<Actor> {
    const actor = await this.world.start(name, PROCESSES[name](this.world, luck));
    while (actor.next !== undefined && actor.next.what !== what) await this.world.step(actor, 'done');
    if (actor.next === undefined) throw new Error(`the ${name} never came to "${what}"`);
    await this.world.step(actor, fate);
    return actor;
  }

  async pass(seconds: number): Promise<void> {
    this.world.doing(`${seconds} s pass`);
    await this.world.advance(seconds);
    this.world.got(`${await this.world.expireHolds()} holds end`);
  }

  /** Bought and carried: the buyer has its tickets. */
  async buy(user: string, quantity = 1): Promise<{ order: OrderState; payment: Payment }> {
    const order = await this.claim(user, quantity);
    const payment = await this.pay(await this.checkout(order));
    await this.deliverAll();
    await this.work('courier', 'bridge');
    return { order, payment };
  }

  claimsOf(order: OrderState): string[] {
    return this.world.state.intake.claims.filter((claim) => claim.order === order.id).map(({ id }) => id);
  }

  async refundOutside(payment: Payment, amount: number): Promise<void> {
    this.world.doing(`${payment.id}: ${amount} of ${payment.amount} are refunded in Stripe's dashboard`);
    this.world.stripe.refundOutside(payment, amount, this.world.rules.toldBy);
    await this.deliverAll();
  }

  async dispute(payment: Payment, amount: number): Promise<Dispute> {
    this.world.doing(`${payment.id}: a dispute takes ${amount} of ${payment.amount}`);
    const dispute = this.world.stripe.openDispute(payment, amount);
    await this.deliverAll();
    return dispute;
  }

  /** A dispute takes so much, for good. */
  async lose(payment: Payment, amount: number): Promise<Dispute> {
    const dispute = await this.dispute(payment, amount);
    this.world.doing(`${payment.id}: its dispute is lost`);
    this.world.stripe.closeDispute(payment, dispute, false, 0, false);
    await this.deliverAll();
    return dispute;
  }

  async skipAll(): Promise<void> {
    for (const { id, state } of this.world.state.ledger.refunds)
      if (state === 'review') {
        this.world.doing(`an operator skips ${id}`);
        this.world.got(await this.world.decideRefund(id, 'skip'));
      }
  }

  async void(claims: readonly string[], isRefund = true): Promise<void> {
    this.world.doing(`an operator voids ${claims.map((id) => this.world.name(id, 'claim ')).join(' and ')}`);
    await this.world.requestVoid(claims, isRefund);
  }
}

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
      await play.work('courier', 'refunder');
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
