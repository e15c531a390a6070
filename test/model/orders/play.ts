// What a history does step by step where it is written by hand: buyers, Stripe, workers and operators of one lane.

import type { Actor, Fate } from './actors.ts';
import type { Dispute, Kind, Payment, Session } from './books.ts';
import { payAt } from './commands/buyers.ts';
import { deliverAt } from './commands/provider.ts';
import { exhaust } from './history.ts';
import { openDoor, PROCESSES, type ProcessName } from './processes.ts';
import { PAY_POOL, type Rules, UNIT_PRICE } from './rules.ts';
import type { OrderState } from './state.ts';
import type { World } from './world.ts';

export const GRACE_SEC = 60;
export const RULES: Rules = {
  slots: 2,
  maxPerUser: null,
  graceSec: GRACE_SEC,
  skewSec: 0,
  bought: 'none',
  refundBy: 'sluice',
  toldBy: 'charge',
};
/** Longer than a worker's lease, shorter than what is left of a hold. */
export const LEASE_OVER_SEC = 120;
export const LUCKY = 9;
export const UNLUCKY = 0;

export class Play {
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
