// What we owe is sent, once and no more than is left, whatever else went back and however Stripe answers.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type Stripe from 'stripe';
import { type Buyer, OrderWorld, PRICE } from './world.ts';

describe('refunds', () => {
  let world: OrderWorld;
  before(async () => {
    world = await OrderWorld.start();
  });
  after(() => world?.stop());
  afterEach(() => world.standIn.control.set({ down: false, cut: false, webhooks: 'on', failNext: 0 }));

  interface Owed extends Buyer {
    paymentIntent: string;
  }
  /** Two seats were paid for; one of them was taken back by an operator, and is to be refunded. */
  const owed = async (): Promise<Owed> => {
    const pool = await world.pool(2);
    const buyer = await world.claimGroup(pool, 2);
    const { payment_intent } = await world.standIn.control.pay(await world.session(buyer));
    await world.delivered();
    await world.work();
    assert.equal((await world.tickets(pool)).length, 2);
    // The closer looks at the session that was paid.
    await world.work();
    await world.standIn.control.set({ webhooks: 'dropped' });
    const sql = `select public.request_void(array[$1::uuid], true, 'test', 'a seat broke')`;
    await world.db2.query(sql, [buyer.claim_id]);
    return { ...buyer, paymentIntent: String(payment_intent) };
  };
  const atStripe = async ({ paymentIntent }: Owed) =>
    (await world.standIn.control.books<Stripe.Refund>('refund')).filter(
      (refund) => refund.payment_intent === paymentIntent,
    );
  const amounts = async (order: Owed) => (await atStripe(order)).map(({ amount }) => amount);
  const states = async ({ pool }: Owed) => (await world.refunds(pool)).map(({ state }) => state);
  const due = () =>
    world.db2.query(`update public.refunds_due set next_attempt_at = now() where state = 'due'`);

  it('are sent with the key and the mark of their row, and told to the ledger without a webhook', async () => {
    const order = await owed();
    await world.work();
    const [refund] = await atStripe(order);
    assert.deepEqual([refund?.amount, refund?.metadata?.sluice_refund], [PRICE, `void:${order.claim_id}`]);
    const saved = await world.standIn.control.books<{ id: string }>('saved');
    assert.ok(saved.some(({ id }) => id === `sluice:refund:void:${order.claim_id}`));
    assert.deepEqual(await states(order), ['done']);
    const sql = `select refunded::int from public.payments where object_id = $1`;
    assert.deepEqual((await world.db2.query(sql, [order.paymentIntent])).rows, [{ refunded: PRICE }]);
  });

  it('wait while Stripe is down, and are sent once when it is back', async () => {
    const order = await owed();
    await world.standIn.control.set({ down: true });
    await world.work();
    assert.deepEqual(await states(order), ['due']);
    await world.standIn.control.set({ down: false, cut: true });
    await due();
    await world.work();
    await world.standIn.control.set({ cut: false });
    await due();
    await world.work();
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE], ['done']]);
  });

  it('are found again after a day, when Stripe has forgotten the key', async () => {
    const order = await owed();
    await world.standIn.control.set({ cut: true });
    await world.work();
    await world.standIn.control.set({ cut: false, clockOffsetSec: 25 * 60 * 60 });
    await due();
    await world.work();
    await world.standIn.control.set({ clockOffsetSec: 0 });
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE], ['done']]);
  });

  /** The ledger is set back to before the refund was sent; a day has passed, so that Stripe has forgotten the key. */
  const setBack = async ({ claim_id }: Owed): Promise<void> => {
    await world.db2.query(
      `update public.refunds_due set state = 'due', tries = 0, provider_refund_id = null, sent_at = null, token = null,
         next_attempt_at = now() where order_id = $1`,
      [claim_id],
    );
    await world.standIn.control.set({ clockOffsetSec: 25 * 60 * 60 });
    await world.work();
    await world.standIn.control.set({ clockOffsetSec: 0 });
  };

  it('are not sent again by a ledger that was restored to a moment before it sent them', async () => {
    const order = await owed();
    await world.work();
    assert.deepEqual(await amounts(order), [PRICE]);
    await setBack(order);
    // Its event was not set back, and has no second effect: the row says no more than that Stripe has it.
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE], ['sent']]);
  });

  it('are sent where the refund that Stripe has is another one', async () => {
    const order = await owed();
    await world.standIn.stripe.refunds.create({ payment_intent: order.paymentIntent, amount: PRICE });
    await setBack(order);
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE, PRICE], ['done']]);
  });

  it('take another key where the first one repeats a failure that sent nothing', async () => {
    const order = await owed();
    await world.standIn.control.set({ failNext: 1, failuresAreDone: false });
    await world.work();
    assert.deepEqual([await amounts(order), await states(order)], [[], ['due']]);
    await due();
    await world.work();
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE], ['done']]);
  });

  it('are not sent again where Stripe answered 500 and had sent them', async () => {
    const order = await owed();
    await world.standIn.control.set({ failNext: 1, failuresAreDone: true });
    await world.work();
    await due();
    await world.work();
    assert.deepEqual([await amounts(order), await states(order)], [[PRICE], ['done']]);
  });

  it('send what is left where part of the payment went back another way, unknown to us', async () => {
    const order = await owed();
    const rest = 100;
    const { paymentIntent: payment_intent } = order;
    await world.standIn.stripe.refunds.create({ payment_intent, amount: 2 * PRICE - rest });
    await world.work();
    assert.deepEqual(await amounts(order), [2 * PRICE - rest, rest]);
    assert.deepEqual(await states(order), ['done']);
  });

  it('are no longer owed where all of the payment went back another way, and its other ticket is void', async () => {
    const order = await owed();
    await world.standIn.stripe.refunds.create({ payment_intent: order.paymentIntent });
    await world.work();
    assert.deepEqual(await amounts(order), [2 * PRICE]);
    assert.deepEqual(await states(order), ['done']);
    await world.work();
    assert.deepEqual(await world.tickets(order.pool), []);
    assert.equal(await world.free(order.pool), 2);
  });

  it('that Stripe refuses wait for an operator, who can send them again under a new key', async () => {
    const order = await owed();
    const { metadata } = await world.standIn.stripe.paymentIntents.retrieve(order.paymentIntent);
    assert.equal(metadata.claim_id, order.claim_id);
    // The bank has the money: nothing can be refunded any more.
    await world.standIn.control.loseDispute(order.paymentIntent);
    await world.work();
    assert.deepEqual(await states(order), ['failed']);
    const [row] = (
      await world.db2.query(
        `select id, error from public.refunds_due where state = 'failed' and order_id = $1`,
        [order.claim_id],
      )
    ).rows;
    assert.match(row.error, /charge_disputed/);
    await world.db2.query(`select * from public.decide_refunds(array[$1], 'send', 'test', 'again')`, [
      row.id,
    ]);
    await world.work();
    assert.deepEqual([await amounts(order), await states(order)], [[], ['failed']]);
  });
});
