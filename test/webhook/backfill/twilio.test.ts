// `sluice webhooks backfill` against a stand-in for Twilio, which keeps calls and messages and not what it sent about them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TOO_MANY } from '../../support/stand_ins/twilio.ts';
import { WebhookWorld } from '../world.ts';
import {
  ACCOUNT,
  backfill,
  call,
  callbackOf,
  envFor,
  message,
  messageCallbackOf,
  type Providers,
  startProviders,
} from './support.ts';

const FORM = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };

describe('backfill from Twilio', () => {
  let world: WebhookWorld;
  let providers: Providers;
  let env: Record<string, string>;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    env = envFor(providers, world.databases.db2.url);
    await world.addEndpoint('twilio', 'twilio', 'queued', { accounts: [ACCOUNT] });
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });
  const types = async (sid: string) =>
    (
      await world.rows<{ event_type: string }>(
        `select event_type from public.webhook_events where event_id like '%' || $1 || ':%' order by 1`,
        [sid],
      )
    ).map(({ event_type }) => event_type);

  it('records calls that have ended and messages, page by page, as the callbacks that were lost', async () => {
    const { calls, messages } = providers.twilio;
    for (let at = 0; at < 450; at++) calls.set(`CA_page_${at}`, call(`CA_page_${at}`));
    const known = call('CA_known', { status: 'busy' });
    calls.set('CA_known', known);
    await world.send('twilio', 'twilio', callbackOf(known), FORM);
    calls.set('CA_running', call('CA_running', { status: 'in-progress', end: null }));
    messages.set('SM_1', message('SM_1'));
    messages.set('SM_in', message('SM_in', { status: 'received', body: 'STOP', direction: 'inbound' }));
    messages.set('SM_queued', message('SM_queued', { status: 'queued', sent: null }));
    providers.twilio.server.faults.push(TOO_MANY, undefined, 'cut');
    assert.deepEqual((await backfill(env, 'twilio')).counts, { asked: 453, known: 1, new: 452, skipped: 0 });
    assert.deepEqual((await backfill(env, 'twilio')).counts, { asked: 453, known: 453, new: 0, skipped: 0 });
    assert.deepEqual(await types('CA_running'), []);
    assert.deepEqual(await types('SM_queued'), []);
    assert.deepEqual(
      [...(await types('SM_1')), ...(await types('SM_in'))],
      ['message.delivered', 'message.received'],
    );
    const { totals } = await world.process();
    assert.deepEqual(totals, { success: 453 });
    const [inbound] = await world.rows(
      `select payload from public.webhook_side_effects where event_id = 'message:SM_in:received'`,
    );
    assert.deepEqual(inbound?.payload, {
      AccountSid: ACCOUNT,
      ApiVersion: '2010-04-01',
      Body: 'STOP',
      From: '+14158675309',
      MessageSid: 'SM_in',
      NumMedia: '0',
      NumSegments: '1',
      SmsSid: 'SM_in',
      SmsStatus: 'received',
      To: '+18005551212',
    });
  });

  it('makes a callback that comes after all a duplicate, and no alarm', async () => {
    const late = call('CA_late');
    const told = message('SM_late', { status: 'undelivered' });
    providers.twilio.calls.set('CA_late', late);
    providers.twilio.messages.set('SM_late', told);
    assert.equal((await backfill(env, 'twilio')).counts.new, 2);
    for (const form of [callbackOf(late), messageCallbackOf(told)]) {
      const answer = await world.send('twilio', 'twilio', form, FORM);
      assert.deepEqual([answer.status, answer.json.status], [200, 'duplicate']);
    }
    assert.deepEqual(await world.rows('select from public.webhook_alarms'), []);
    const [row] = await world.rows(
      `select payload ->> 'CallDuration' as sec, occurred_at is not null as timed from public.webhook_events where event_id = $1`,
      ['call:CA_late:completed'],
    );
    assert.deepEqual(row, { sec: '63', timed: true });
  });

  it('leaves out what happened before and after the stretch that was asked for', async () => {
    const at = (iso: string) => new Date(iso);
    providers.twilio.calls.set('CA_before', call('CA_before', { end: at('2026-03-01T09:59:59Z') }));
    providers.twilio.calls.set('CA_in', call('CA_in', { end: at('2026-03-01T10:00:00Z') }));
    providers.twilio.calls.set('CA_after', call('CA_after', { end: at('2026-03-01T11:00:00Z') }));
    // Sent before midnight, delivered after it.
    const overnight = { sent: at('2026-02-28T23:59:00Z'), changed: at('2026-03-01T10:30:00Z') };
    providers.twilio.messages.set('SM_night', message('SM_night', overnight));
    const words = ['--since', '2026-03-01T10:00:00Z', '--until', '2026-03-01T11:00:00Z'];
    assert.deepEqual((await backfill(env, 'twilio', ...words)).counts, {
      asked: 2,
      known: 0,
      new: 2,
      skipped: 0,
    });
    assert.deepEqual(await types('CA_in'), ['call.completed']);
    assert.deepEqual(await types('SM_night'), ['message.delivered']);
  });

  it('says what is wrong with a key, and needs to know whose calls they are', async () => {
    const refused = async (key: string, expected: RegExp, endpoint = 'twilio') => {
      const { code, stderr } = await backfill({ ...env, TWILIO_API_KEY: key }, endpoint);
      assert.equal(code, 1);
      assert.match(stderr, expected);
      assert.equal(stderr.includes(key), false);
    };
    await refused(`SK${'4'.repeat(32)}:${'5'.repeat(32)}`, /HTTP 401: Authenticate/);
    await refused('no-pair-but-long-enough', /TWILIO_API_KEY is not a key of Twilio/);
    const shared = { p_tenant: 'twilio' };
    await world.rows(
      `select webhook.add_endpoint('nameless', 'twilio', '{TWILIO_AUTH_TOKEN}', p_actor => 'test', p_tenant => $1)`,
      [shared.p_tenant],
    );
    await refused(`SK${'4'.repeat(32)}:${'5'.repeat(32)}`, /does not say whose calls/, 'nameless');
    providers.twilio.keys.set(`${ACCOUNT}:token-of-the-account-itself`, [ACCOUNT]);
    const own = await backfill(
      { ...env, TWILIO_API_KEY: `${ACCOUNT}:token-of-the-account-itself` },
      'nameless',
    );
    assert.equal(own.code, 0);
  });

  it('follows no page to another address', async () => {
    providers.twilio.server.faults.push({
      status: 200,
      body: { calls: [], next_page_uri: 'https://elsewhere.example.com/2010-04-01/Calls.json' },
    });
    const { code, stderr } = await backfill(env, 'twilio');
    assert.equal(code, 1);
    assert.match(stderr, /names a next page at another address/);
  });
});
