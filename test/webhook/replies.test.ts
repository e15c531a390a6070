// What a handler wants to be answered: stored with its effect, given to the provider that waits, and gone with the payload.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Handler } from '#core/webhook/handlers.ts';
import { WebhookWorld } from './world.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const EMPTY = '<?xml version="1.0" encoding="UTF-8"?><Response/>';

const handler: Handler = {
  name: 'answers',
  provider: 'twilio',
  types: ['voice.gather'],
  async apply(event, tx) {
    const said = `<Response><Say>${event.payload.Digits}</Say></Response>`;
    await tx.query('select webhook.reply_event($1, $2)', [event.id, said]);
    if (event.payload.Digits === '9') throw new Error('nine is not taken');
  },
};

describe('a request of Twilio for TwiML', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start(new Map([[handler.name, handler]]));
    await world.addEndpoint('inline', 'twilio', 'inline');
    await world.addEndpoint('queued', 'twilio', 'queued');
    await world.db2.query(
      `create function public.answer_message(p_event public.webhook_events) returns text language plpgsql as $$
       begin perform webhook.reply_event(p_event.id, '<Response><Message>Thank you</Message></Response>'); return null; end $$;
       insert into public.webhook_handlers (provider, event_type, kind, name)
       values ('twilio', 'message.received', 'sql', 'public.answer_message')`,
    );
    await world.process();
  });
  after(() => world?.stop());

  const gather = (endpoint: string, digits: string) =>
    world.send(endpoint, 'twilio', `CallSid=CA${endpoint}&CallStatus=in-progress&Digits=${digits}`, {
      headers: FORM,
    });

  it('gets what its TypeScript handler said, the same again at a retry, and its own at each Gather', async () => {
    for (const digits of ['1', '1', '2']) {
      const { status, headers, text } = await gather('inline', digits);
      assert.deepEqual(
        [status, headers['content-type'], text],
        [200, 'text/xml; charset=utf-8', `<Response><Say>${digits}</Say></Response>`],
      );
    }
    assert.deepEqual(await world.rows('select count(*)::int as n from public.webhook_events'), [{ n: 2 }]);
  });

  it('gets what an SQL handler said', async () => {
    const body = 'MessageSid=SM1&SmsStatus=received&Body=hi';
    const { text } = await world.send('inline', 'twilio', body, { headers: FORM });
    assert.equal(text, '<Response><Message>Thank you</Message></Response>');
  });

  it('gets 500 where the handler failed, and the reply is gone with the effect', async () => {
    assert.equal((await gather('inline', '9')).status, 500);
    const said = await world.rows(`select body from webhook.replies where body like '%9%'`);
    assert.deepEqual(said, []);
  });

  it('gets an empty response from a queued endpoint, and where no handler has another', async () => {
    assert.equal((await gather('queued', '5')).text, EMPTY);
    const { text } = await world.send('inline', 'twilio', 'CallSid=CA7&CallStatus=ringing', {
      headers: FORM,
    });
    assert.equal(text, EMPTY);
  });

  it('loses its reply with its payload', async () => {
    await world.db2.query(`update public.webhook_events set received_at = now() - interval '2 days'`);
    await world.db2.query('select webhook.prune_payloads(1)');
    const left = await world.rows(
      `select r.event_id from webhook.replies r join public.webhook_events e on e.id = r.event_id where e.payload is null`,
    );
    assert.deepEqual(left, []);
  });
});

it('a WhatsApp post of 3 MB is taken, a larger one up to what its endpoint allows, and none above 10 MB', async () => {
  const world = await WebhookWorld.start();
  try {
    await world.addEndpoint('whatsapp', 'whatsapp', 'queued');
    const post = (id: string, bytes: number) => {
      const bare = `{"entry":[{"changes":[{"value":{"messages":[{"id":"${id}","text":""}]}}]}]}`;
      return bare.replace('""', `"${'x'.repeat(bytes - bare.length)}"`);
    };
    const takes = async (endpoint: string, most: number, bytes = most) => {
      assert.equal((await world.send(endpoint, 'whatsapp', post(endpoint, bytes))).status, 200);
      const stored = await world.event(`message:${endpoint}`);
      assert.equal(stored?.payload.message.text.length > bytes - 200, true);
      const refused = await world.send(endpoint, 'whatsapp', post('above', most + 1)).catch(() => undefined);
      // The server may close the connection while we still send.
      assert.ok(refused === undefined || refused.status === 413);
      assert.equal(await world.event('message:above'), undefined);
    };
    const allow = (name: string, max_body_bytes: number) =>
      world.db2.query(
        `select webhook.add_endpoint($1, 'whatsapp', '{WHATSAPP_APP_SECRET}', 'queued', $2, 'test')`,
        [name, { max_body_bytes }],
      );
    await takes('whatsapp', 3 * 1024 * 1024);
    await allow('large', 10 * 1024 * 1024);
    // Not all 10 MB: on a machine with much else to do they take longer than a provider waits.
    await takes('large', 10 * 1024 * 1024, 4 * 1024 * 1024);
    await assert.rejects(allow('larger', 10 * 1024 * 1024 + 1), { code: 'SL001' });
  } finally {
    await world.stop();
  }
});
