// The stand-ins answer as the providers' own packages expect: what those read is what was put in.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Stripe from 'stripe';
import twilio from 'twilio';
import { RATE_LIMITED, SERVER_ERROR } from '../../../src/stripe_stand_in/refusal.ts';
import { StripeStandIn } from '../../../src/stripe_stand_in/stand_in.ts';
import { TOO_MANY, TwilioStandIn } from '../../support/stand_ins/twilio.ts';
import { ACCOUNT, call, KEYS, message, stripeEvent, TWILIO_KEY } from './support.ts';

const nowSec = () => Math.floor(Date.now() / 1_000);

describe('the stand-in for Stripe', () => {
  let standIn: StripeStandIn;
  before(async () => {
    standIn = await StripeStandIn.start({ keys: KEYS });
  });
  after(() => standIn?.server.stop());
  const client = (key = 'rk_live_all_0123456789') =>
    new Stripe(key, { host: '127.0.0.1', port: standIn.server.port, protocol: 'http', maxNetworkRetries: 0 });
  const idsOf = async (params: Stripe.EventListParams, account?: string) => {
    const ids: string[] = [];
    const options = account === undefined ? {} : { stripeAccount: account };
    for await (const event of client().events.list(params, options)) {
      assert.equal(event.object, 'event');
      assert.equal(typeof event.pending_webhooks, 'number');
      ids.push(event.id);
    }
    return ids;
  };

  it('lists events newest first, page by page, and no event of before 30 days', async () => {
    const from = nowSec() - 1_000;
    for (let at = 0; at < 250; at++) standIn.send(stripeEvent(`evt_${at}`, { created: from + at }));
    standIn.send(stripeEvent('evt_old', { created: nowSec() - 31 * 24 * 60 * 60 }));
    const ids = await idsOf({ limit: 100 });
    assert.deepEqual(
      ids,
      Array.from({ length: 250 }, (_, at) => `evt_${249 - at}`),
    );
    assert.deepEqual(await idsOf({ created: { gte: from + 10, lt: from + 12 } }), ['evt_11', 'evt_10']);
  });

  it('tells undelivered events from delivered ones, and accounts from each other', async () => {
    standIn.markDelivered('evt_3');
    const created = { gte: nowSec() - 1_000 + 0, lt: nowSec() };
    const open = await idsOf({ created, delivery_success: false, limit: 100 });
    assert.equal(open.includes('evt_3'), false);
    assert.deepEqual(await idsOf({ delivery_success: true }), ['evt_3']);
    standIn.send(stripeEvent('evt_of_account', { account: 'acct_connected', created: nowSec() }));
    assert.deepEqual(await idsOf({}, 'acct_connected'), ['evt_of_account']);
    assert.equal((await idsOf({ limit: 100 })).includes('evt_of_account'), false);
  });

  it('refuses as Stripe does: 401, 403, 404, 429 and 500 are the errors of its package', async () => {
    const { errors } = Stripe;
    await assert.rejects(
      client('rk_live_unknown_0123456789').events.list(),
      errors.StripeAuthenticationError,
    );
    await assert.rejects(client('rk_live_nothing_0123456789').events.list(), errors.StripePermissionError);
    await assert.rejects(
      client().events.list({}, { stripeAccount: 'acct_other' }),
      errors.StripePermissionError,
    );
    await assert.rejects(
      client().events.list({ starting_after: 'evt_none' }),
      errors.StripeInvalidRequestError,
    );
    await assert.rejects(client().events.list({ limit: 101 }), errors.StripeInvalidRequestError);
    standIn.server.faults.push(RATE_LIMITED, SERVER_ERROR, 'cut');
    await assert.rejects(client().events.list(), errors.StripeRateLimitError);
    await assert.rejects(client().events.list(), errors.StripeAPIError);
    await assert.rejects(client().events.list());
  });

  it('lists charges, and shows one', async () => {
    standIn.charge({
      id: 'ch_1',
      object: 'charge',
      amount: 500,
      amount_captured: 500,
      amount_refunded: 100,
      currency: 'eur',
      created: nowSec(),
      payment_intent: 'pi_1',
      status: 'succeeded',
    });
    const { data } = await client().charges.list();
    assert.deepEqual(
      data.map(({ id, amount_refunded }) => [id, amount_refunded]),
      [['ch_1', 100]],
    );
    assert.equal((await client().charges.retrieve('ch_1')).payment_intent, 'pi_1');
  });
});

describe('the stand-in for Twilio', () => {
  let standIn: TwilioStandIn;
  before(async () => {
    standIn = await TwilioStandIn.start({ [TWILIO_KEY]: [ACCOUNT] });
  });
  after(() => standIn?.server.stop());
  /** The package's own client, with another host: it asks, pages and reads as ever. */
  const client = (key = TWILIO_KEY, account = ACCOUNT) => {
    const [user, password] = key.split(':');
    const own = twilio(user, password, { accountSid: account });
    const httpClient = Object.create(own.httpClient) as typeof own.httpClient;
    httpClient.request = (options) =>
      own.httpClient.request({ ...options, uri: options.uri.replace(/^https:\/\/[^/]+/, standIn.url) });
    return twilio(user, password, { accountSid: account, httpClient });
  };

  it('lists calls and messages page by page, with times that the package reads', async () => {
    for (let at = 0; at < 120; at++) {
      standIn.calls.set(`CA${at}`, call(`CA${at}`));
      standIn.messages.set(`SM${at}`, message(`SM${at}`));
    }
    const calls = await client().calls.list({ pageSize: 50, endTimeAfter: new Date(Date.now() - 1_000) });
    assert.equal(calls.length, 120);
    assert.equal(new Set(calls.map(({ sid }) => sid)).size, 120);
    assert.ok(
      calls.every(({ endTime, status }) => !Number.isNaN(endTime.getTime()) && status === 'completed'),
    );
    const messages = await client().messages.list({ pageSize: 50, dateSentAfter: new Date() });
    assert.equal(messages.length, 120);
    assert.ok(messages.every(({ dateUpdated }) => !Number.isNaN(dateUpdated.getTime())));
    const later = new Date(Date.now() + 2 * 24 * 60 * 60 * 1_000);
    assert.deepEqual(await client().calls.list({ endTimeAfter: later }), []);
  });

  it('refuses as Twilio does', async () => {
    const fails = (asked: Promise<unknown>, status: number, code: number) =>
      assert.rejects(asked, (error: { status: number; code: number }) => {
        assert.deepEqual([error.status, error.code], [status, code]);
        return true;
      });
    const wrong = `SK${'0'.repeat(32)}:wrong`;
    await fails(client(wrong).calls.list(), 401, 20_003);
    await fails(client(TWILIO_KEY, `AC${'9'.repeat(32)}`).calls.list(), 403, 20_403);
    standIn.server.faults.push(TOO_MANY);
    await fails(client().calls.list(), 429, 20_429);
  });
});
