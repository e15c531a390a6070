// Thin events about payments: a worker asks Stripe for what they point at, and until it can they wait.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ListedCharge } from '../../src/stripe_stand_in/books.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import {
  deliveryOf,
  envFor,
  type Providers,
  STRIPE_KEY,
  startProviders,
  stripeEvent,
} from './backfill/support.ts';
import { WebhookWorld } from './world.ts';

describe('thin events about payments', () => {
  let world: WebhookWorld;
  let providers: Providers;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    await world.addEndpoint('stripe', 'stripe', 'queued', { accounts: ['acct_connected'] });
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });

  const created = Math.floor(Date.now() / 1_000);
  const charge = (user: string, change: Partial<ListedCharge> = {}): ListedCharge => ({
    ...{
      id: `ch_${user}`,
      object: 'charge',
      payment_intent: `pi_${user}`,
      amount: 1000,
      currency: 'eur',
      created,
    },
    ...{
      amount_captured: 1000,
      amount_refunded: 0,
      captured: true,
      status: 'succeeded',
      metadata: { user_id: user },
    },
    ...change,
  });
  const send = async (id: string, type: string, url: string, change: Record<string, unknown> = {}) => {
    const related_object = { id: url.split('/').at(-1), type: 'thing', url };
    const head = { id, object: 'v2.core.event', type, livemode: true, created: new Date().toISOString() };
    const answer = await world.send(
      'stripe',
      'stripe',
      JSON.stringify({ ...head, related_object, ...change }),
    );
    assert.equal(answer.status, 200, answer.text);
  };
  const work = (key = STRIPE_KEY) =>
    world.process(NO_HANDLERS, {
      secretOf: (name) => (name === 'STRIPE_API_KEY' ? key : undefined),
      urls: envFor(providers, world.databases.db2.url),
    });
  const endOf = async (id: string) => {
    const { status, error, attempts } = (await world.event(id)) as {
      status: string;
      error: string;
      attempts: number;
    };
    return { status, error, attempts };
  };
  const worth = async (user: string) => (await world.credited(user)).sum;
  const letPass = (id: string) =>
    world.db2.query('update public.webhook_events set next_attempt_at = now() where event_id = $1', [id]);

  it('wait while no key is set, and say what to do, and then have their effect', async () => {
    providers.stripe.charge(charge('ann'));
    await send('evt_1', 'v1.charge.succeeded', '/v1/charges/ch_ann');
    await work('');
    const { status, error, attempts } = await endOf('evt_1');
    assert.deepEqual([status, attempts], ['failed', 0]);
    assert.match(
      error,
      /^a thin event carries no amounts, and Stripe could not be asked for them: STRIPE_API_KEY /,
    );
    assert.equal(await worth('ann'), 0);
    await letPass('evt_1');
    await work();
    assert.deepEqual(await endOf('evt_1'), { status: 'success', error: null, attempts: 1 });
    assert.equal(await worth('ann'), 1000);
  });

  it('move what Stripe says was captured, refunded and disputed, once', async () => {
    providers.stripe.charge(charge('bob'));
    await send('evt_2', 'v1.charge.captured', '/v1/charges/ch_bob');
    await work();
    await send('evt_3', 'v1.charge.succeeded', '/v1/charges/ch_bob');
    providers.stripe.charge(charge('bob', { amount_refunded: 300 }));
    await send('evt_4', 'v1.charge.refunded', '/v1/charges/ch_bob');
    providers.stripe.books.put('dispute', {
      ...{
        id: 'dp_bob',
        object: 'dispute',
        amount: 400,
        currency: 'eur',
        created,
        livemode: true,
        status: 'lost',
      },
      ...{ charge: 'ch_bob', payment_intent: 'pi_bob' },
      balance_transactions: [{ id: 'txn_bob', amount: -400, currency: 'eur', type: 'adjustment', created }],
    });
    for (const [id, type] of [
      ['evt_5', 'funds_withdrawn'],
      ['evt_6', 'closed'],
    ])
      await send(String(id), `v1.charge.dispute.${type}`, '/v1/disputes/dp_bob');
    await work();
    const ends = await Promise.all(['evt_2', 'evt_3', 'evt_4', 'evt_5', 'evt_6'].map(endOf));
    assert.equal(await worth('bob'), 300);
    for (const { status, error } of ends)
      assert.ok(
        status === 'success' || /^(already known|older than what is known)$/.test(error),
        `${status} ${error}`,
      );
    const versions = providers.stripe.server.requests.map(({ headers }) => headers['stripe-version']);
    assert.deepEqual([...new Set(versions)], ['2025-03-31.basil']);
  });

  it('have the effect of their snapshot where they name it, also beside it', async () => {
    const snapshot = stripeEvent('evt_snapshot', { object: { metadata: { user_id: 'cid' } } });
    providers.stripe.send({ ...snapshot, account: 'acct_connected' });
    await send('evt_7', 'v1.payment_intent.succeeded', '/v1/payment_intents/pi_evt_snapshot', {
      ...{ snapshot_event: 'evt_snapshot', context: 'acct_connected' },
    });
    await world.send('stripe', 'stripe', deliveryOf({ ...snapshot, account: 'acct_connected' }));
    await work();
    assert.equal(await worth('cid'), 100);
    const asked = providers.stripe.server.requests.at(-1);
    assert.deepEqual(
      [asked?.url.pathname, asked?.headers['stripe-account']],
      ['/v1/events/evt_snapshot', 'acct_connected'],
    );
  });

  it('wait for a right of the key, and for Stripe, without an attempt', async () => {
    await send('evt_8', 'v1.payment_intent.succeeded', '/v1/payment_intents/pi_dan');
    await work();
    const { status, error, attempts } = await endOf('evt_8');
    assert.deepEqual([status, attempts], ['failed', 0]);
    assert.match(error, /rak_payment_intent_read/);
  });

  it('are dead letters where Stripe does not have what they point at', async () => {
    await send('evt_9', 'v1.charge.succeeded', '/v1/charges/ch_gone');
    await send('evt_10', 'v1.charge.succeeded', 'https://example.com/v1/charges/ch_gone');
    await work();
    assert.deepEqual((await endOf('evt_9')).status, 'dead_letter');
    assert.match((await endOf('evt_9')).error, /^Stripe refuses the question with HTTP 404: /);
    assert.deepEqual(await endOf('evt_10'), {
      status: 'dead_letter',
      error: 'it names no object of Stripe',
      attempts: 1,
    });
  });

  it('go to a handler of yours where one is registered for their type', async () => {
    const own = new Map([
      ['own', { name: 'own', provider: 'stripe', types: ['v1.charge.failed'], apply: async () => 'mine' }],
    ]);
    await send('evt_11', 'v1.charge.failed', '/v1/charges/ch_bob');
    await world.process(own, { secretOf: () => STRIPE_KEY, urls: {} });
    assert.deepEqual(await endOf('evt_11'), { status: 'skipped', error: 'mine', attempts: 1 });
  });
});
