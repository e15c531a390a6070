// A restricted key with the rights that docs/paid_tickets.md names does all that paid orders ask of Stripe, and each right is needed.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createPayments } from '#core/orders/stripe.ts';
import { openStripe } from '../../src/orders/stripe.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { StripeStandIn } from '../../src/stripe_stand_in/stand_in.ts';
import { readPage } from '../contract/docs.ts';

const OWNER = 'sk_live_owner_0123456789';
/** As the page calls them, and what each lets a key do: to write is to read as well. */
const RIGHTS: Readonly<Record<string, readonly string[]>> = {
  'write Checkout Sessions': ['checkout_session_read', 'checkout_session_write'],
  'write Charges and Refunds': ['charge_read', 'charge_write'],
  'read PaymentIntents': ['payment_intent_read'],
  'read Events': ['event_read'],
};
const keyWithout = (name: string) => `rk_live_without_${name.replaceAll(' ', '_')}`;
const FULL = 'rk_live_documented_0123456789';

describe('a restricted key', () => {
  let standIn: StripeStandIn;
  let control: StandInClient;
  before(async () => {
    const all = Object.values(RIGHTS).flat();
    const keys = Object.fromEntries([
      [OWNER, { rights: 'all' as const }],
      [FULL, { rights: all }],
      ...Object.entries(RIGHTS).map(([name, own]) => [
        keyWithout(name),
        { rights: all.filter((right) => !own.includes(right)) },
      ]),
    ]);
    standIn = await StripeStandIn.start({ keys });
    control = new StandInClient(standIn.url, OWNER);
  });
  after(() => standIn?.stop());

  const urls = () => ({ STRIPE_API_URL: standIn.url });
  let made = 0;

  /** All that a checkout, the closer and the refunder ask. */
  async function sell(key: string): Promise<void> {
    const payments = createPayments(await openStripe(key, urls()));
    const order = `order-${++made}`;
    const params = {
      mode: 'payment',
      client_reference_id: order,
      line_items: [
        {
          quantity: 1,
          price_data: { currency: 'eur', unit_amount: 700, product_data: { name: 'A seat' } },
        },
      ],
      metadata: { checkout: `${order}:1` },
      success_url: 'https://tickets.example.com',
    };
    const { id } = await payments.createSession(params, `sluice:checkout:${order}:1`);
    assert.equal((await payments.findSession(`${order}:1`, Date.now() - 60_000))?.id, id);
    await control.pay(id);
    const { paymentIntent, isPaid } = await payments.expireSession(id);
    assert.equal(isPaid, true);
    assert.equal(await payments.standingOf(paymentIntent ?? ''), 'paid');
    assert.equal(await payments.refundable(paymentIntent ?? ''), 700);
    const refund = { payment: paymentIntent ?? '', amount: 700, refundKey: order, idempotencyKey: order };
    await payments.refund(refund);
    assert.equal((await payments.refundsOf(paymentIntent ?? '')).length, 1);
  }

  it('has the rights that the page names', () => {
    const [, step = ''] = /^2\. \*\*Key\.\*\*([\s\S]*?)\n\n/m.exec(readPage('paid_tickets.md')) ?? [];
    const named = [...step.matchAll(/\*\*([^*]+)\*\*/g)].map(([, name]) => name);
    assert.deepEqual(named, Object.keys(RIGHTS));
  });

  it('sells, closes and refunds', () => sell(FULL));

  for (const name of Object.keys(RIGHTS).filter((one) => one !== 'read Events'))
    it(`does not without the right to ${name}`, () =>
      assert.rejects(sell(keyWithout(name)), { kind: 'key' }));

  it('does not ask for events without the right to read them', async () => {
    const list = (key: string) =>
      fetch(`${standIn.url}/v1/events`, { headers: { authorization: `Bearer ${key}` } });
    assert.deepEqual([(await list(FULL)).status, (await list(keyWithout('read Events'))).status], [200, 403]);
  });
});
