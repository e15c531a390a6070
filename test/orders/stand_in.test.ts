// The stand-in for Stripe answers as Stripe's own package expects: its types when it compiles, its errors when it runs. Texts and codes
// are those of docs.stripe.com (api/errors, error-codes, api/idempotent_requests, api/checkout/sessions) and of public reports, which
// src/stripe_stand_in names where it uses them.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import Stripe from 'stripe';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { StripeStandIn } from '../../src/stripe_stand_in/stand_in.ts';

const KEY = 'sk_live_stand_in_0123456789';
const READ_ONLY = 'rk_live_reader_0123456789';
const { errors } = Stripe;

describe('the stand-in for Stripe takes payments', () => {
  let standIn: StripeStandIn;
  let stripe: Stripe;
  before(async () => {
    standIn = await StripeStandIn.start({
      keys: { [KEY]: { rights: 'all' }, [READ_ONLY]: { rights: ['checkout_session_read'] } },
    });
    stripe = clientOf(KEY);
  });
  after(() => standIn?.stop());
  beforeEach(() => standIn.switches.reset());

  const clientOf = (key: string) =>
    new Stripe(key, {
      host: '127.0.0.1',
      port: standIn.server.port,
      protocol: 'http',
      maxNetworkRetries: 0,
      httpClient: Stripe.createFetchHttpClient(),
    });
  const inSec = (sec: number) => standIn.books.nowSec + sec;
  const params = (change: Partial<Stripe.Checkout.SessionCreateParams> = {}) => ({
    mode: 'payment' as const,
    line_items: [
      {
        quantity: 2,
        price_data: { currency: 'eur', unit_amount: 1_250, product_data: { name: 'Seat <1>' } },
      },
    ],
    client_reference_id: 'order_1',
    metadata: { claim_id: 'order_1', checkout: 'order_1:1' },
    payment_intent_data: { metadata: { claim_id: 'order_1', user_id: 'ann' } },
    allowed_payment_method_types: ['card' as const],
    adaptive_pricing: { enabled: false },
    expires_at: inSec(31 * 60),
    success_url: 'http://127.0.0.1:1/drop/p?claim=1&session={CHECKOUT_SESSION_ID}',
    cancel_url: 'http://127.0.0.1:1/drop/p?claim=1',
    ...change,
  });
  const refused = (asked: Promise<unknown>, kind: abstract new (...args: never[]) => Error, text: RegExp) =>
    assert.rejects(asked, (error: Error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      assert.match(error.message, text);
      return true;
    });
  const typesOf = () => standIn.books.list('event').map(({ type }) => type);

  it('makes a session that is open until it is paid on its page, without a script', async () => {
    const session = await stripe.checkout.sessions.create(params());
    assert.deepEqual(
      [session.object, session.status, session.payment_status, session.amount_total, session.currency],
      ['checkout.session', 'open', 'unpaid', 2_500, 'eur'],
    );
    assert.equal(session.payment_intent, null);
    const page = await (await fetch(session.url ?? '')).text();
    assert.match(page, /2 × Seat &#60;1&#62;/);
    assert.match(page, /Pay €25\.00/);
    assert.equal(/<script/.test(page), false);
    const paid = await fetch(session.url ?? '', { method: 'POST', redirect: 'manual' });
    assert.equal(paid.status, 303);
    assert.equal(paid.headers.get('location'), `http://127.0.0.1:1/drop/p?claim=1&session=${session.id}`);
    const after = await stripe.checkout.sessions.retrieve(session.id);
    assert.deepEqual([after.status, after.payment_status, after.url], ['complete', 'paid', null]);
    const intent = await stripe.paymentIntents.retrieve(String(after.payment_intent));
    assert.deepEqual(
      [intent.status, intent.amount_received, intent.metadata],
      ['succeeded', 2_500, { claim_id: 'order_1', user_id: 'ann' }],
    );
    assert.equal((await fetch(session.url ?? '', { method: 'POST', redirect: 'manual' })).status, 409);
    assert.deepEqual(typesOf().slice(-3), [
      'charge.succeeded',
      'payment_intent.succeeded',
      'checkout.session.completed',
    ]);
  });

  it('repeats the answer of an idempotency key, and refuses the key with other parameters', async () => {
    const idempotencyKey = 'sluice:checkout:order_2:1';
    const same = params();
    const first = await stripe.checkout.sessions.create(same, { idempotencyKey });
    const again = await stripe.checkout.sessions.create(same, { idempotencyKey });
    assert.equal(again.id, first.id);
    assert.equal(new Headers(again.lastResponse.headers).get('idempotent-replayed'), 'true');
    await refused(
      stripe.checkout.sessions.create({ ...same, client_reference_id: 'other' }, { idempotencyKey }),
      errors.StripeIdempotencyError,
      /only be used with the same parameters.*sluice:checkout:order_2:1/,
    );
    await refused(
      stripe.refunds.create({ payment_intent: 'pi_1' }, { idempotencyKey }),
      errors.StripeIdempotencyError,
      /same endpoint/,
    );
    standIn.switches.set({ clockOffsetSec: 24 * 60 * 60 });
    const nextDay = await stripe.checkout.sessions.create(params(), { idempotencyKey });
    assert.notEqual(nextDay.id, first.id);
  });

  it('repeats a 500, done or not, and forgets what it refused before it began', async () => {
    for (const failuresAreDone of [false, true]) {
      const idempotencyKey = `sluice:checkout:fails:${failuresAreDone}`;
      const reference = { client_reference_id: `fails_${failuresAreDone}` };
      const same = params(reference);
      standIn.switches.set({ failNext: 1, failuresAreDone });
      for (let tries = 0; tries < 3; tries++)
        await refused(
          stripe.checkout.sessions.create(same, { idempotencyKey }),
          errors.StripeAPIError,
          /unknown error/,
        );
      const { data } = await stripe.checkout.sessions.list({ limit: 100 });
      const made = data.filter((one) => one.client_reference_id === reference.client_reference_id);
      assert.equal(made.length, failuresAreDone ? 1 : 0);
    }
    const idempotencyKey = 'sluice:checkout:too_soon:1';
    const early = params({ expires_at: inSec(60) });
    await refused(
      stripe.checkout.sessions.create(early, { idempotencyKey }),
      errors.StripeInvalidRequestError,
      /at least 30 minutes/,
    );
    assert.equal((await stripe.checkout.sessions.create(params(), { idempotencyKey })).status, 'open');
  });

  it('says that a key is in use while its first request is under way', async () => {
    standIn.switches.set({ slowMs: 200 });
    const same = params();
    const both = await Promise.allSettled(
      [1, 2].map(() => stripe.checkout.sessions.create(same, { idempotencyKey: 'twice' })),
    );
    const [failed] = both.filter((end) => end.status === 'rejected');
    assert.equal(both.filter((end) => end.status === 'fulfilled').length, 1);
    assert.deepEqual([failed?.reason.statusCode, failed?.reason.code], [409, 'idempotency_key_in_use']);
  });

  it('takes an expires_at from 30 minutes to 24 hours ahead by its own clock', async () => {
    const create = (expiresAt: number) => stripe.checkout.sessions.create(params({ expires_at: expiresAt }));
    await create(inSec(30 * 60 + 5));
    await refused(create(inSec(30 * 60 - 5)), errors.StripeInvalidRequestError, /at least 30 minutes from/);
    await refused(create(inSec(24 * 3_600 + 5)), errors.StripeInvalidRequestError, /less than 24 hours from/);
    const at = inSec(31 * 60);
    standIn.switches.set({ clockOffsetSec: 120 });
    await refused(create(at), errors.StripeInvalidRequestError, /at least 30 minutes/);
  });

  it('expires an open session once, and none that is complete or expired', async () => {
    const { id } = await stripe.checkout.sessions.create(params());
    assert.equal((await stripe.checkout.sessions.expire(id)).status, 'expired');
    await refused(
      stripe.checkout.sessions.expire(id),
      errors.StripeInvalidRequestError,
      /Only Checkout Sessions with a status in \["open"\] can be expired\. This Checkout Session has a status of `expired`\./,
    );
    const paid = await stripe.checkout.sessions.create(params());
    standIn.sessions.pay(paid.id);
    await refused(stripe.checkout.sessions.expire(paid.id), errors.StripeInvalidRequestError, /`complete`/);
    await refused(
      stripe.checkout.sessions.expire('cs_live_none'),
      errors.StripeInvalidRequestError,
      /No such checkout/,
    );
  });

  it('lets a session lapse by its own clock', async () => {
    const { id, url } = await stripe.checkout.sessions.create(params());
    standIn.switches.set({ clockOffsetSec: 32 * 60 });
    assert.equal((await stripe.checkout.sessions.retrieve(id)).status, 'expired');
    assert.match(await (await fetch(url ?? '')).text(), /has expired/);
    assert.equal(typesOf().at(-1), 'checkout.session.expired');
  });

  it('lists sessions by time and status, and takes no filter that Stripe does not have', async () => {
    const { id } = await stripe.checkout.sessions.create(params({ client_reference_id: 'listed' }));
    const found: string[] = [];
    for await (const one of stripe.checkout.sessions.list({ created: { gte: inSec(-60) }, limit: 3 }))
      if (one.client_reference_id === 'listed') found.push(one.id);
    assert.deepEqual(found, [id]);
    const byReference = { client_reference_id: 'listed' } as unknown as Stripe.Checkout.SessionListParams;
    await refused(
      stripe.checkout.sessions.list(byReference),
      errors.StripeInvalidRequestError,
      /Received unknown parameter: client_reference_id/,
    );
  });

  it('completes a session of a delayed method unpaid, and tells later how it ended', async () => {
    const { id } = await stripe.checkout.sessions.create(params());
    standIn.sessions.pay(id, 'delayed');
    const waiting = await stripe.checkout.sessions.retrieve(id);
    assert.deepEqual([waiting.status, waiting.payment_status], ['complete', 'unpaid']);
    standIn.sessions.endDelayed(id, true);
    assert.equal((await stripe.checkout.sessions.retrieve(id)).payment_status, 'paid');
    assert.equal(typesOf().at(-1), 'checkout.session.async_payment_succeeded');
    const other = await stripe.checkout.sessions.create(params());
    standIn.sessions.pay(other.id, 'delayed');
    standIn.sessions.endDelayed(other.id, false);
    const failed = await stripe.checkout.sessions.retrieve(other.id);
    assert.equal(failed.payment_status, 'unpaid');
    const intent = await stripe.paymentIntents.retrieve(String(failed.payment_intent));
    assert.equal(intent.status, 'requires_payment_method');
  });

  it('refunds no more than was paid', async () => {
    const paid = await stripe.paymentIntents.create({ amount: 1_000, currency: 'eur', confirm: true });
    const pi = { payment_intent: paid.id };
    const refund = await stripe.refunds.create(
      { ...pi, amount: 400, metadata: { sluice_refund: 'settle:1' } },
      { idempotencyKey: 'sluice:refund:settle:1' },
    );
    assert.deepEqual(
      [refund.object, refund.amount, refund.status, refund.payment_intent],
      ['refund', 400, 'succeeded', paid.id],
    );
    await refused(
      stripe.refunds.create({ ...pi, amount: 601 }),
      errors.StripeInvalidRequestError,
      /greater than unrefunded amount/,
    );
    await stripe.refunds.create(pi);
    const { data } = await stripe.refunds.list({ ...pi, limit: 100 });
    assert.deepEqual(
      data.map(({ amount, metadata }) => [amount, metadata?.sluice_refund]),
      [
        [600, undefined],
        [400, 'settle:1'],
      ],
    );
    await assert.rejects(stripe.refunds.create(pi), { code: 'charge_already_refunded', statusCode: 400 });
    await refused(
      stripe.refunds.create({ payment_intent: 'pi_none' }),
      errors.StripeInvalidRequestError,
      /No such payment_intent: 'pi_none'/,
    );
    assert.deepEqual(typesOf().slice(-2), ['refund.created', 'charge.refunded']);
  });

  it('lets a bank win a dispute, after which nothing is refunded', async () => {
    const paid = await stripe.paymentIntents.create({ amount: 500, currency: 'eur', confirm: true });
    standIn.money.loseDispute(paid.id);
    assert.equal(typesOf().at(-1), 'charge.dispute.closed');
    await assert.rejects(stripe.refunds.create({ payment_intent: paid.id }), { code: 'charge_disputed' });
  });

  it('refuses keys that do not exist or may not, and parameters that it does not know', async () => {
    await refused(
      clientOf('sk_live_unknown_0123456789').checkout.sessions.create(params()),
      errors.StripeAuthenticationError,
      /Invalid API Key/,
    );
    await refused(
      clientOf(READ_ONLY).checkout.sessions.create(params()),
      errors.StripePermissionError,
      /rak_checkout_session_write/,
    );
    await refused(
      stripe.checkout.sessions.create(params({ line_items: [] })),
      errors.StripeInvalidRequestError,
      /Missing required param: line_items/,
    );
    const odd = { ...params(), expires: 1 } as Stripe.Checkout.SessionCreateParams;
    await refused(
      stripe.checkout.sessions.create(odd),
      errors.StripeInvalidRequestError,
      /Received unknown parameter: expires/,
    );
  });

  it('is down, slow or cut when it is told so, and its control is never', async () => {
    const control = new StandInClient(standIn.url, KEY);
    await control.set({ down: true });
    await refused(stripe.checkout.sessions.list(), errors.StripeConnectionError, /connection to Stripe/);
    await control.set({ down: false, cut: true });
    const idempotencyKey = 'cut:1';
    const same = params({ client_reference_id: 'cut' });
    await assert.rejects(stripe.checkout.sessions.create(same, { idempotencyKey }));
    await control.set({ cut: false });
    const { id } = await stripe.checkout.sessions.create(same, { idempotencyKey });
    const { data } = await stripe.checkout.sessions.list({ limit: 100 });
    assert.deepEqual(
      data.filter((one) => one.client_reference_id === 'cut').map((one) => one.id),
      [id],
    );
    await control.set({ slowMs: 300 });
    const impatient = new Stripe(KEY, {
      host: '127.0.0.1',
      port: standIn.server.port,
      protocol: 'http',
      maxNetworkRetries: 0,
      timeout: 50,
      httpClient: Stripe.createFetchHttpClient(),
    });
    await refused(impatient.checkout.sessions.list(), errors.StripeConnectionError, /aborted|timeout/i);
  });
});
