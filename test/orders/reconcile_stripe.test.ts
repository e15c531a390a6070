// `sluice reconcile --stripe` beside the stand-in's own books: sessions, payments and refunds, with differences planted on either side.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { runHere } from '../cli/support.ts';
import { type Buyer, OrderWorld, PRICE } from './world.ts';

interface Difference {
  readonly kind: string;
  readonly payment: string;
  readonly detail: string;
}

describe('reconcile with Stripe about paid orders', () => {
  let world: OrderWorld;
  let env: Record<string, string>;
  before(async () => {
    world = await OrderWorld.start();
    const { db1Url = '', db2Url, secretOf, urls } = world.orderOptions;
    env = {
      DB1_URL: db1Url,
      DB2_URL: db2Url,
      STRIPE_API_URL: urls.STRIPE_API_URL ?? '',
      STRIPE_API_KEY: secretOf('STRIPE_API_KEY') ?? '',
    };
  });
  after(() => world?.stop());
  afterEach(() => world.standIn.control.set({ webhooks: 'on' }));

  /** What it found, and the commands that it names. */
  async function reconcile(): Promise<{ found: string[]; commands: string[]; differences: Difference[] }> {
    const { code, stdout, stderr } = await runHere(['reconcile', '--stripe', '--json'], env);
    assert.equal(stderr, '');
    const { differences, commands } = JSON.parse(stdout) as { differences: Difference[]; commands: string[] };
    assert.equal(code, differences.length === 0 ? 0 : 1);
    return { found: differences.map(({ kind, payment }) => `${kind} ${payment}`), commands, differences };
  }

  async function paid(buyer: Buyer): Promise<string> {
    const { payment_intent } = await world.standIn.control.pay(await world.session(buyer));
    return String(payment_intent);
  }

  /** Paid and carried: the buyer has the ticket. */
  async function bought(pool: string, user = 'ann'): Promise<{ buyer: Buyer; payment: string }> {
    const buyer = await world.claim(pool, user);
    const payment = await paid(buyer);
    await world.delivered();
    await world.work();
    assert.equal(await world.statusOf(buyer), 'paid');
    return { buyer, payment };
  }

  /** As a signed event tells it: the ledger does not ask Stripe whether it is true. */
  const tell = (object: Record<string, unknown>) =>
    world.db2.query(`select public.record_pulled('stripe', $1)`, [object]);

  it('finds nothing wrong with orders that are held, paid, refunded and over', async () => {
    const pool = await world.pool(6);
    await world.session(await world.claim(pool, 'held'));
    await bought(pool, 'paid');
    const { payment } = await bought(pool, 'refunded');
    await world.standIn.stripe.refunds.create({ payment_intent: payment });
    const over = await world.claim(pool, 'over');
    await world.session(over);
    await world.endHold(over);
    await world.delivered();
    await world.work();
    assert.equal(await world.statusOf(over), 'expired');
    assert.deepEqual((await reconcile()).found, []);
  });

  it('finds a payment and its session that no webhook told, until the closer has asked', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    await world.standIn.control.set({ webhooks: 'dropped' });
    const payment = await paid(buyer);
    const { found, commands } = await reconcile();
    assert.deepEqual(found, [`payment_missing ${payment}`, `session_undecided ${payment}`]);
    assert.match(commands.join(), /^sluice webhooks backfill stripe --since /);
    await world.endHold(buyer);
    await world.work();
    assert.equal(await world.statusOf(buyer), 'paid');
    assert.deepEqual((await reconcile()).found, []);
  });

  it('finds a refund that no webhook told, and the command that it names takes the ticket back', async () => {
    const pool = await world.pool(1);
    const { buyer, payment } = await bought(pool);
    await world.standIn.control.set({ webhooks: 'dropped' });
    await world.standIn.stripe.refunds.create({ payment_intent: payment });
    const { found, commands, differences } = await reconcile();
    assert.deepEqual(found, [`refunded_differs ${payment}`]);
    assert.equal(differences[0]?.detail, `Stripe ${PRICE}, ledger 0 eur`);
    const [, ...words] = commands[0]?.split(' ') ?? [];
    assert.equal((await runHere(words, env)).code, 0);
    await world.work();
    assert.equal(await world.statusOf(buyer), 'voided');
    assert.deepEqual((await reconcile()).found, []);
  });

  it('finds a session that is open though its order is over, and one that the intake does not know', async () => {
    const pool = await world.pool(2);
    const [over, unknown] = [await world.claim(pool, 'over'), await world.claim(pool, 'unknown')];
    const [openSession, lostSession] = [await world.session(over), await world.session(unknown)];
    await world.db1.query(
      `update public.orders set hold_until = now() - interval '1 hour', grace_until = now() - interval '1 hour' where order_id = $1`,
      [over.claim_id],
    );
    await world.db1.query(`update public.checkouts set state = 'expired' where order_id = $1`, [
      over.claim_id,
    ]);
    await world.db1.query('select public.expire_holds(1000)');
    await world.db1.query('delete from public.checkouts where order_id = $1', [unknown.claim_id]);
    const { found } = await reconcile();
    assert.deepEqual(found.sort(), [`session_open ${openSession}`, `session_unknown ${lostSession}`]);
    for (const session of [openSession, lostSession])
      await world.standIn.stripe.checkout.sessions.expire(session);
    assert.deepEqual((await reconcile()).found, []);
  });

  it('finds a payment that bought a seat and that Stripe does not have', async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    await tell({
      id: 'cs_forged',
      object: 'checkout.session',
      payment_intent: 'pi_forged',
      payment_status: 'paid',
      status: 'complete',
      amount_total: PRICE,
      currency: 'eur',
      livemode: true,
      metadata: { claim_id: buyer.claim_id, user_id: 'ann', verified: 'false' },
    });
    await world.work();
    assert.equal(await world.statusOf(buyer), 'paid', 'the ledger believes what is signed');
    const { found, commands } = await reconcile();
    // Stripe has no event of it.
    assert.deepEqual([found, commands], [['payment_unknown pi_forged'], []]);
    await world.db2.query(`delete from public.claim_outbox where payment_key = 'stripe/pi_forged'`);
    assert.deepEqual((await reconcile()).found, []);
  });

  it('finds a refund that the ledger was told of and Stripe does not have', async () => {
    const pool = await world.pool(1);
    const { payment } = await bought(pool);
    await tell({
      id: 're_forged',
      object: 'refund',
      payment_intent: payment,
      amount: PRICE,
      currency: 'eur',
      status: 'succeeded',
      livemode: true,
    });
    const { found, differences } = await reconcile();
    assert.deepEqual(found, [`refunded_differs ${payment}`]);
    assert.equal(differences[0]?.detail, `Stripe 0, ledger ${PRICE} eur`);
  });
});
