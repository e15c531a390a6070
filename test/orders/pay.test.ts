// From the hold to the ticket, and every way in which it goes otherwise: two workers of each kind, real databases, and Stripe's
// stand-in in a process of its own.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type Stripe from 'stripe';
import { createLog } from '../../src/log.ts';
import { carryOrdersOnce } from '../../src/orders/crew.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer } from '../server/support.ts';
import { OrderWorld, PRICE, until } from './world.ts';

describe('a claim that is paid for', () => {
  let world: OrderWorld;
  let stop: () => Promise<void> = async () => undefined;
  before(async () => {
    world = await OrderWorld.start();
  });
  after(() => world?.stop());
  afterEach(async () => {
    await stop();
    stop = async () => undefined;
    await world.standIn.control.set({ down: false, cut: false, slowMs: 0, webhooks: 'on', failNext: 0 });
  });
  const isTicket = (pool: string, count = 1) =>
    until(async () => (await world.tickets(pool)).length === count);
  const refundsAtStripe = async (paymentIntent: unknown) =>
    (await world.standIn.control.books<Stripe.Refund>('refund')).filter(
      (refund) => refund.payment_intent === paymentIntent,
    );

  it('is held, paid on the page that checkout gives, and becomes a ticket', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const made = await world.checkout(buyer);
    assert.equal(made.status, 201, made.text);
    assert.deepEqual([made.json.amount, made.json.currency], [PRICE, 'eur']);
    assert.ok(Date.parse(made.json.hold_until) > Date.now());
    const again = await world.checkout(buyer);
    assert.deepEqual([again.status, again.json.url], [200, made.json.url]);
    assert.equal(await world.statusOf(buyer), 'held');
    const paid = await fetch(made.json.url, { method: 'POST', redirect: 'manual' });
    assert.equal(paid.headers.get('location'), `${world.server.url}/drop/${pool}?claim=${buyer.claim_id}`);
    stop = world.workers();
    await isTicket(pool);
    await until(async () => (await world.show(buyer)).status === 'committed');
    assert.equal(await world.statusOf(buyer), 'paid');
    assertRefusal(await world.checkout(buyer), 409, 'paid');
    assert.deepEqual(await world.refunds(pool), []);
  });

  it('becomes a ticket although no webhook ever tells the payment: the closer asks', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const session = await world.session(buyer);
    await world.standIn.control.set({ webhooks: 'dropped' });
    await world.standIn.control.pay(session);
    stop = world.workers();
    await world.endHold(buyer);
    await isTicket(pool);
    assert.equal(await world.free(pool), 0);
    assert.equal(await world.statusOf(buyer), 'paid');
  });

  it('keeps its seat where its endpoint skips the payment: operators are told, and a replay makes it a ticket', async () => {
    const level = async () =>
      (await world.db1.query('select intake.order_level() as level')).rows[0].level as Record<string, number>;
    const endpointTakes = (mode: string) =>
      world.db2.query(`update public.webhook_endpoints set livemode = $1 where tenant = 'stripe'`, [mode]);
    const lookNow = () =>
      world.db1.query(`update public.checkouts set next_attempt_at = now() where state = 'complete'
                         and next_attempt_at < 'infinity'`);
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    await endpointTakes('test');
    const session = await world.session(buyer);
    await world.standIn.control.pay(session);
    await world.delivered();
    await world.endHold(buyer, { withGrace: true });
    const lines: string[] = [];
    const log = createLog('error', (line) => lines.push(line));
    await carryOrdersOnce({ ...world.orderOptions, log }, new AbortController().signal);
    assert.equal(await world.statusOf(buyer), 'paying');
    const told = lines.map((line) => JSON.parse(line)).find(({ order_id }) => order_id === buyer.claim_id);
    assert.deepEqual([told?.event_id, told?.status], [`pull:${session}`, 'skipped']);
    await world.db1.query(`update public.checkouts set completed_at = completed_at - interval '2 minutes'`);
    const { paying, past_bound, to_close } = await level();
    assert.deepEqual({ paying, past_bound, to_close }, { paying: 1, past_bound: 1, to_close: 1 });
    await endpointTakes('both');
    const replayed = await ask(`${world.server.url}/admin/webhooks/events/replay`, {
      method: 'POST',
      headers: bearer(ADMIN_KEY),
      body: { filter: { status: 'skipped', event_id: told.event_id } },
    });
    assert.equal(replayed.status, 200, replayed.text);
    await world.work();
    await lookNow();
    await world.work();
    assert.equal(await world.statusOf(buyer), 'paid');
    assert.equal((await level()).past_bound, 0);
  });

  it('is freed when its hold is over, and its session is closed before', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const session = await world.session(buyer);
    await world.endHold(buyer);
    stop = world.workers();
    await until(async () => (await world.free(pool)) === 1);
    assert.equal((await world.standIn.stripe.checkout.sessions.retrieve(session)).status, 'expired');
    assert.equal(await world.statusOf(buyer), 'expired');
    assertRefusal(await world.checkout(buyer), 409, 'hold_over');
  });

  it('waits for Stripe for its grace, and no longer; who pays then gets a seat that is free', async () => {
    const pool = await world.pool(2);
    const buyer = await world.claim(pool);
    const session = await world.session(buyer);
    await world.standIn.control.set({ down: true });
    await world.endHold(buyer);
    stop = world.workers();
    // The workers have looked, and Stripe is silent: the seat is kept.
    await until(async () => (await attempts(buyer.claim_id)) > 0);
    assert.equal(await world.free(pool), 1);
    await world.endHold(buyer, { withGrace: true });
    await until(async () => (await world.free(pool)) === 2);
    assert.equal(await world.statusOf(buyer), 'expired');
    await world.standIn.control.pay(session);
    await world.standIn.control.set({ down: false });
    await isTicket(pool);
    const [ticket] = await world.tickets(pool);
    assert.notEqual(ticket, buyer.claim_id);
    assert.equal(await world.statusOf(buyer), 'paid');
    assert.equal(await world.free(pool), 1);
  });

  it('is refunded, once, where it is paid for too late and nothing is free', async () => {
    const pool = await world.pool(1);
    const late = await world.claim(pool, 'late');
    const session = await world.session(late);
    await world.standIn.control.set({ down: true });
    await world.endHold(late, { withGrace: true });
    stop = world.workers();
    await until(async () => (await world.free(pool)) === 1);
    const next = await world.claim(pool, 'next');
    const { payment_intent } = await world.standIn.control.pay(session);
    await world.standIn.control.set({ down: false });
    await until(async () => (await refundsAtStripe(payment_intent)).length > 0);
    await until(async () => (await world.statusOf(late)) === 'refunded');
    assert.deepEqual(
      (await refundsAtStripe(payment_intent)).map(({ amount }) => amount),
      [PRICE],
    );
    assert.equal(await world.statusOf(next), 'held');
  });

  it('of a second session that was paid too is refunded once, and the first keeps its ticket', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const first = await world.session(buyer);
    // As if the row had been lost: the session lives on at Stripe, and a second one is made.
    await world.db1.query(`update public.checkouts set state = 'expired' where order_id = $1`, [
      buyer.claim_id,
    ]);
    const second = await world.session(buyer);
    assert.notEqual(first, second);
    await world.standIn.control.pay(second);
    const { payment_intent } = await world.standIn.control.pay(first);
    stop = world.workers();
    await isTicket(pool);
    const paid = await world.standIn.control.books<Stripe.PaymentIntent>('payment_intent');
    const ours = paid.filter(({ metadata }) => metadata.claim_id === buyer.claim_id).map(({ id }) => id);
    await until(async () => (await Promise.all(ours.map(refundsAtStripe))).flat().length > 0);
    const refunds = (await Promise.all(ours.map(refundsAtStripe))).flat();
    assert.equal(refunds.length, 1);
    assert.ok(ours.includes(String(payment_intent)));
    assert.equal((await world.tickets(pool)).length, 1);
  });

  it('is voided by a full refund, and its seat is on sale once', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const { payment_intent } = await world.standIn.control.pay(await world.session(buyer));
    stop = world.workers();
    await isTicket(pool);
    await world.standIn.stripe.refunds.create({ payment_intent: String(payment_intent) });
    await until(async () => (await world.free(pool)) === 1);
    assert.deepEqual(await world.tickets(pool), []);
    assert.equal((await world.show(buyer)).status, 'voided');
    assert.equal(await world.statusOf(buyer), 'voided');
    const next = await world.claim(pool, 'next');
    await world.standIn.control.pay(await world.session(next));
    await isTicket(pool);
    assert.deepEqual(await world.tickets(pool), [next.claim_id]);
    assert.equal((await refundsAtStripe(payment_intent)).length, 1);
  });

  it('is voided by a dispute that the seller lost', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const { payment_intent } = await world.standIn.control.pay(await world.session(buyer));
    stop = world.workers();
    await isTicket(pool);
    await world.standIn.control.loseDispute(String(payment_intent));
    await until(async () => (await world.free(pool)) === 1);
    assert.deepEqual(await world.tickets(pool), []);
  });

  it('that a delayed method pays after its end is a late payment', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const session = await world.session(buyer);
    await world.standIn.control.pay(session, 'delayed');
    await world.endHold(buyer);
    stop = world.workers();
    await until(async () => (await world.free(pool)) === 1);
    await world.standIn.control.endDelayed(session, true);
    await isTicket(pool);
    assert.equal(await world.statusOf(buyer), 'paid');
  });

  const attempts = async (orderId: string): Promise<number> => {
    const sql = 'select max(attempts)::int as attempts from public.checkouts where order_id = $1';
    return (await world.db1.query(sql, [orderId])).rows[0].attempts;
  };
});
