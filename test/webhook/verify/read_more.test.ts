// What of a body a provider may not overlook, and what it may not make up.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { utf8 } from '#core/webhook/bytes.ts';
import type { ReadEvent, SignedRequest } from '#core/webhook/provider.ts';
import { handshake, providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { NOW } from './cases.ts';

async function read(
  provider: string,
  body: string,
  headers: SignedRequest['headers'] = {},
): Promise<ReadEvent[]> {
  const known = providerNamed(provider);
  assert.ok(known);
  return known.read({ method: 'POST', url: '', headers, body: utf8(body) }, { port: nodeHmac, nowSec: NOW });
}

const one = async (...args: Parameters<typeof read>): Promise<ReadEvent> => {
  const events = await read(...args);
  assert.equal(events.length, 1);
  return events[0] as ReadEvent;
};

describe('which providers take forms, and sign addresses', () => {
  it('are Twilio, GitHub and Slack, and Twilio', () => {
    const names = ['stripe', 'twilio', 'whatsapp', 'daily', 'github', 'shopify', 'slack', 'standard', 'hmac'];
    const which = (flag: 'takesForms' | 'signsUrl') =>
      names.filter((name) => providerNamed(name)?.[flag] === true);
    assert.deepEqual([which('takesForms'), which('signsUrl')], [['twilio', 'github', 'slack'], ['twilio']]);
  });
});

describe('an event whose type stands in a header', () => {
  it('of GitHub has what happened behind it, where both say so', async () => {
    const typeOf = async (event: string | string[] | undefined, body: string) =>
      (await one('github', body, { 'x-github-delivery': 'd', 'x-github-event': event })).eventType;
    assert.equal(await typeOf('issues', '{"action":"opened"}'), 'issues.opened');
    assert.equal(await typeOf('push', '{}'), 'push');
    assert.equal(await typeOf('push', '{"action":7}'), 'push');
    assert.equal(await typeOf(undefined, '{"action":"opened"}'), 'unknown');
    assert.equal(await typeOf(['a', 'b'], '{"action":"opened"}'), 'unknown');
  });

  it('of Shopify is its topic, its id is not signed, and its signature is base64', async () => {
    const headers = { 'x-shopify-event-id': 'shop-1', 'x-shopify-topic': 'orders/create' };
    const event = await one('shopify', '{"updated_at":"2026-02-24T11:00:00+01:00"}', headers);
    assert.deepEqual(
      [event.eventId, event.eventType, event.occurredAt],
      ['orders/create:shop-1', 'orders/create', '2026-02-24T10:00:00.000Z'],
    );
    assert.equal((await one('shopify', '{}', { 'x-shopify-topic': 'orders/create' })).quarantine, 'no_id');
    const body = utf8('{}');
    const signed = await providerNamed('shopify')?.sign({ method: 'POST', url: '', body }, 's', {
      port: nodeHmac,
      nowSec: NOW,
    });
    assert.match(signed?.['x-shopify-hmac-sha256'] ?? '', /^[A-Za-z0-9+/]{43}=$/);
  });
});

describe('Shopify', () => {
  const topic = (type: string, id: string, body: string) =>
    one('shopify', body, { 'x-shopify-event-id': id, 'x-shopify-topic': type });

  it('has an event for each topic of one action, also where two topics tell the same body', async () => {
    const events = await Promise.all([
      topic('orders/create', 'e1', '{"id":1}'),
      topic('orders/paid', 'e1', '{"id":1}'),
      topic('customers/update', 'e1', '{"id":7}'),
    ]);
    assert.equal(new Set(events.map(({ eventId }) => eventId)).size, 3);
    assert.equal(new Set(events.map(({ dedupeHash }) => dedupeHash)).size, 3);
  });

  it('knows a body again under another id, by its topic', async () => {
    const [first, swapped] = await Promise.all([
      topic('orders/create', 'e1', '{"id":1}'),
      topic('orders/create', 'e2', '{"id":1}'),
    ]);
    assert.ok(first.dedupeHash);
    assert.equal(first.dedupeHash, swapped.dedupeHash);
    assert.notEqual(first.eventId, swapped.eventId);
  });
});

describe('Stripe', () => {
  it('leaves out how many deliveries are open, and nothing else', async () => {
    const hashOf = async (more: string) => (await one('stripe', `{"id":"a"${more}}`)).hash;
    const plain = await hashOf(',"pending_webhooks":1');
    assert.equal(await hashOf(',"pending_webhooks": \n 12'), plain);
    assert.notEqual(await hashOf(',"pending_webhooks":"1"'), plain);
    assert.notEqual(await hashOf(',"pending_webhooks":true1'.replace('true1', 'true')), plain);
    // It is taken out, not replaced: the rest alone is what is hashed.
    const sha = await nodeHmac.sha256(utf8('{"id":"a",}'));
    assert.equal(plain, Buffer.from(sha).toString('hex'));
  });
});

describe('Twilio', () => {
  const digest = /^request:[0-9a-f]{32}$/;

  it('names a thing and its status where both are there once, and the whole request otherwise', async () => {
    for (const body of [
      'CallSid=CA1',
      'CallStatus=busy',
      'CallSid=CA1&CallSid=CA2&CallStatus=busy',
      'CallSid=CA1&CallStatus=a&CallStatus=b',
    ])
      assert.match((await one('twilio', body)).eventId, digest, body);
  });

  it('tells a callback about a call from a request for TwiML', async () => {
    for (const [body, type] of [
      ['CallStatus=ringing', 'voice.request'],
      ['CallStatus=ringing&CallbackSource=call-progress-events', 'call.ringing'],
      ['CallStatus=ringing&SequenceNumber=1', 'call.ringing'],
      ['CallStatus=ringing&Timestamp=Tue%2C+24+Feb+2026+10%3A00%3A00+%2B0000', 'call.ringing'],
      ['CallStatus=completed', 'call.completed'],
      ['CallStatus=completed&DialCallStatus=busy', 'voice.dial'],
      ['CallStatus=in-progress&Digits=1', 'voice.gather'],
      ['CallStatus=in-progress&RecordingUrl=u&Digits=1', 'voice.record'],
    ] as const)
      assert.equal((await one('twilio', `CallSid=CA1&${body}`)).eventType, type, body);
  });

  it('names a Gather by its fields and the query, so that each is an event and a retry is not', async () => {
    const gather = async (digits: string, query = '') => {
      const url = `https://shop.example/hook${query}`;
      const body = utf8(`CallSid=CA1&CallStatus=in-progress&Digits=${digits}`);
      const request = { method: 'POST', url, headers: {}, body };
      const [event] = (await providerNamed('twilio')?.read(request, { port: nodeHmac, nowSec: NOW })) ?? [];
      return event?.eventId ?? '';
    };
    assert.match(await gather('1'), /^voice:CA1:[0-9a-f]{32}$/);
    assert.equal(await gather('1'), await gather('1'));
    const others = await Promise.all([gather('1'), gather('2'), gather('1', '?step=2')]);
    assert.equal(new Set(others).size, 3);
  });

  it('names what happens to a conference or room by its number, and by its fields where it has none', async () => {
    const idOf = async (body: string) => (await one('twilio', body)).eventId;
    const join = 'ConferenceSid=CF1&StatusCallbackEvent=participant-join&CallSid=CA1';
    assert.equal(await idOf(`${join}&SequenceNumber=3`), 'conference:CF1:participant-join:3');
    assert.equal(
      await idOf('RoomSid=RM1&StatusCallbackEvent=room-ended&SequenceNumber=9'),
      'room:RM1:room-ended:9',
    );
    assert.match(await idOf(join), /^conference:CF1:participant-join:[0-9a-f]{32}$/);
  });

  it('wants TwiML for calls and messages that ask, and for nothing else', async () => {
    const replyTo = async (body: string) =>
      providerNamed('twilio')?.reply?.(await read('twilio', body))?.contentType;
    for (const body of ['CallSid=CA1&CallStatus=ringing', 'MessageSid=SM1&SmsStatus=received&Body=hi'])
      assert.equal(await replyTo(body), 'text/xml; charset=utf-8', body);
    for (const body of ['CallSid=CA1&CallStatus=completed', 'MessageSid=SM1&MessageStatus=delivered', 'a=1'])
      assert.equal(await replyTo(body), undefined, body);
  });

  it('keeps the time of a callback, also where it is about nothing we know', async () => {
    const Timestamp = encodeURIComponent('Tue, 24 Feb 2026 10:00:00 +0000');
    for (const body of [`CallSid=CA1&CallStatus=busy&Timestamp=${Timestamp}`, `Timestamp=${Timestamp}`])
      assert.equal((await one('twilio', body)).occurredAt, '2026-02-24T10:00:00.000Z', body);
  });
});

describe('Slack', () => {
  it('keeps a command as the object of its fields, and one with a NUL as bytes only', async () => {
    const command = await one('slack', 'command=%2Fgo&trigger_id=13.1&text=a');
    assert.deepEqual(
      [command.payload, command.quarantine],
      ['{"command":"/go","text":"a","trigger_id":"13.1"}', null],
    );
    const poisoned = await one('slack', 'command=%2Fgo&trigger_id=13.1&text=%00');
    assert.deepEqual([poisoned.payload, poisoned.quarantine], [null, 'nul_character']);
  });

  it('takes a payload that is not an object, or came twice, for a field like any other', async () => {
    for (const [body, payload] of [
      ['trigger_id=1&payload=7', '{"payload":"7","trigger_id":"1"}'],
      ['trigger_id=1&payload=%7B', '{"payload":"{","trigger_id":"1"}'],
      ['trigger_id=1&payload=%7B%7D&payload=8', '{"payload":["8","{}"],"trigger_id":"1"}'],
    ] as const)
      assert.equal((await one('slack', body)).payload, payload);
  });

  it('answers a challenge of 1,024 bytes, and none that is longer or begins otherwise', () => {
    const challengeOf = (body: string) =>
      providerNamed('slack')?.challenge?.({ method: 'POST', url: '', headers: {}, body: utf8(body) });
    const asking = (bytes: number) => {
      const bare = '{"type":"url_verification","challenge":"c","x":""}';
      return bare.replace('""}', `"${'x'.repeat(bytes - bare.length)}"}`);
    };
    assert.equal(utf8(asking(1_024)).length, 1_024);
    assert.equal(challengeOf(asking(1_024)), 'c');
    assert.equal(challengeOf(asking(1_025)), undefined);
    assert.equal(challengeOf(` ${asking(60)}`), undefined);
  });
});

describe('WhatsApp', () => {
  const post = (value: string, entry = '') =>
    `{"entry":[{${entry}"changes":[{"field":"messages","value":${value}}]}]}`;

  it('has an event for each status, with its time and the number it is about', async () => {
    const value =
      '{"metadata":{"phone_number_id":"p1"},"statuses":[{"id":"wamid.A","status":"read","timestamp":"1700000000"}]}';
    assert.deepEqual(
      [await one('whatsapp', post(value, '"id":"42",'))].map(({ hash, ...rest }) => rest),
      [
        {
          eventId: 'status:wamid.A:read',
          eventType: 'status.read',
          occurredAt: '2023-11-14T22:13:20.000Z',
          payload:
            '{"business_account_id":"42","phone_number_id":"p1","status":{"id":"wamid.A","status":"read","timestamp":"1700000000"}}',
          dedupeHash: null,
          quarantine: null,
        },
      ],
    );
  });

  it('reads a time in digits or as a number, and nothing else', async () => {
    const timeOf = async (timestamp: string) => {
      const update = post(`{"messages":[{"id":"wamid.A","timestamp":${timestamp}}]}`);
      const { occurredAt, quarantine } = await one('whatsapp', update);
      assert.equal(quarantine, null);
      return occurredAt;
    };
    assert.equal(await timeOf('"1700000000"'), '2023-11-14T22:13:20.000Z');
    assert.equal(await timeOf('1700000000'), '2023-11-14T22:13:20.000Z');
    assert.equal(await timeOf('null'), null);
    for (const strange of [
      '"a1700000000"',
      '"1700000000a"',
      '"170000000000"',
      '""',
      '" 1700000000"',
      '[1700000000]',
    ])
      assert.equal(await timeOf(strange), null, strange);
  });

  it('quarantines a status or message that lacks what names it', async () => {
    for (const value of [
      '{"statuses":[{"status":"read"}]}',
      '{"statuses":[{"id":"wamid.A"}]}',
      '{"statuses":[[]]}',
      '{"statuses":["read"]}',
      '{"messages":[{"type":"text"}]}',
      '{"messages":["text"]}',
    ])
      assert.equal((await one('whatsapp', post(value))).quarantine, 'no_id', value);
    for (const entry of ['{}', '{"changes":{}}', '[]']) {
      assert.equal((await one('whatsapp', `{"entry":[${entry}]}`)).quarantine, 'no_id', entry);
    }
  });

  it('keeps news with its account, its time and the whole change', async () => {
    const news =
      '{"entry":[{"id":"42","time":1700000000,"changes":[{"field":"account_update","value":{"x":1}}]}]}';
    const { payload, occurredAt } = await one('whatsapp', news);
    assert.equal(
      payload,
      '{"business_account_id":"42","time":1700000000,"change":{"field":"account_update","value":{"x":1}}}',
    );
    assert.equal(occurredAt, '2023-11-14T22:13:20.000Z');
    const nameless = await one('whatsapp', '{"entry":[{"changes":[{"field":"f","value":{}}]}]}');
    assert.equal(
      nameless.payload,
      '{"business_account_id":null,"time":null,"change":{"field":"f","value":{}}}',
    );
  });

  it('quarantines news that jsonb cannot keep', async () => {
    const { quarantine } = await one('whatsapp', post('{"x":"\\u0000"}', '"id":"42",'));
    assert.equal(quarantine, 'nul_character');
  });
});

describe('Meta’s handshake', () => {
  const ask = (fields: Record<string, string>) =>
    handshake(
      new URLSearchParams({
        'hub.mode': 'subscribe',
        'hub.verify_token': 't',
        'hub.challenge': 'c',
        ...fields,
      }).toString(),
      't',
    );

  it('answers a challenge of 1 to 200 visible characters', () => {
    for (const challenge of ['c', '!~', 'x'.repeat(200)])
      assert.equal(ask({ 'hub.challenge': challenge }), challenge);
    for (const challenge of ['', 'a b', ' a', 'a ', 'ü', 'x'.repeat(201)])
      assert.equal(ask({ 'hub.challenge': challenge }), undefined, challenge);
  });

  it('needs mode, token and challenge', () => {
    for (const query of [
      'hub.verify_token=t&hub.challenge=c',
      'hub.mode=subscribe&hub.challenge=c',
      'hub.mode=subscribe&hub.verify_token=t',
      '',
    ])
      assert.equal(handshake(query, 't'), undefined, query);
  });
});

describe('a list of events', () => {
  const DEEP = '['.repeat(40) + ']'.repeat(40);
  const ITEMS = Array.from({ length: 1_000 }, (_, at) => ({ id: `${at}`, type: 'text' }));
  const LISTS = {
    whatsapp: (items: string) =>
      `{"entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":${items}}}]}]}`,
    twilio: (items: string) => items,
  };
  const readList = (provider: keyof typeof LISTS, items: string, port = nodeHmac): Promise<ReadEvent[]> => {
    const url = `https://shop.example/hook?bodySHA256=${'0'.repeat(64)}`;
    const request = { method: 'POST', url, headers: {}, body: utf8(LISTS[provider](items)) };
    return Promise.resolve(providerNamed(provider)?.read(request, { port, nowSec: NOW }) ?? []);
  };

  for (const provider of ['whatsapp', 'twilio'] as const) {
    it(`of ${provider} is read in pieces, in its order, and other work goes on between them`, async () => {
      let turns = 0;
      const counting = setInterval(() => turns++, 0);
      const events = await readList(provider, JSON.stringify(ITEMS)).finally(() => clearInterval(counting));
      assert.deepEqual(
        events.map(({ eventId }) => eventId.replace('message:', '')),
        ITEMS.map(({ id }) => id),
      );
      assert.ok(turns >= 10, `${turns} turns of the event loop`);
    });

    it(`of ${provider} with more than a thousand is kept as one`, async () => {
      const [event, ...more] = await readList(provider, JSON.stringify([...ITEMS, { id: 'one more' }]));
      assert.deepEqual([event?.quarantine, more.length], ['too_many_updates', 0]);
    });

    it(`of ${provider} is hashed once, however many of its events are too deep`, async () => {
      const items = `[${Array(100).fill(`{"id":"a","x":${DEEP}}`).join()}]`;
      const bytes = utf8(LISTS[provider](items)).length;
      let hashed = 0;
      const sha256 = (data: Uint8Array) => {
        if (data.length === bytes) hashed++;
        return nodeHmac.sha256(data);
      };
      const events = await readList(provider, items, { ...nodeHmac, sha256 });
      assert.deepEqual([events.length, events[0]?.quarantine, hashed], [100, 'too_deep', 1]);
    });
  }
});
