import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JsonError } from '#core/json.ts';
import type { ReadEvent, SignedRequest } from '#core/webhook/provider.ts';
import { PROVIDER_NAMES, providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { SAMPLE_TYPES, sampleOf } from '../../../src/webhook/samples.ts';
import { NOW, SCHEME } from './cases.ts';

const CONTEXT = { port: nodeHmac, nowSec: NOW, scheme: SCHEME };
const HEADERS = { 'x-github-delivery': 'guid-1', 'x-github-event': 'push', 'webhook-id': 'msg_1' };

async function read(
  provider: string,
  body: string | Uint8Array,
  headers: SignedRequest['headers'] = HEADERS,
): Promise<ReadEvent[]> {
  const known = providerNamed(provider);
  assert.ok(known);
  return known.read({ method: 'POST', url: '', headers, body: Buffer.from(body) }, CONTEXT);
}

async function readOne(provider: string, body: string | Uint8Array, headers = HEADERS): Promise<ReadEvent> {
  const events = await read(provider, body, headers);
  assert.equal(events.length, 1);
  return events[0] as ReadEvent;
}

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const event = (more: string): string => `{"id":"evt_1","type":"charge.succeeded","created":${NOW}${more}}`;

describe('a body that is one event', () => {
  test('gives its id, type and time, and is its own payload', async () => {
    const { hash, ...rest } = await readOne('stripe', event(''));
    assert.match(hash, /^[0-9a-f]{64}$/);
    assert.deepEqual(rest, {
      eventId: 'evt_1',
      eventType: 'charge.succeeded',
      occurredAt: '2023-11-14T22:13:20.000Z',
      payload: null,
      dedupeHash: null,
      quarantine: null,
    });
  });

  for (const [what, more, reason] of [
    ['33 levels', `,"x":${deep(32)}`, 'too_deep'],
    ['100,000 levels', `,"x":${deep(100_000)}`, 'too_deep'],
    ['an escaped NUL', ',"x":"\\u0000"', 'nul_character'],
    ['an escaped NUL, and 100,000 levels', `,"x":"\\u0000","y":${deep(100_000)}`, 'nul_character'],
    ['half a surrogate pair', ',"x":"\\ud800"', 'lone_surrogate'],
    ['a number of 130,000 digits', ',"x":1e130000', 'number_too_large'],
    ['a number with 130,000 digits behind the point', ',"x":1e-130000', 'number_too_large'],
  ] as const) {
    test(`with ${what} is quarantined under its own id`, async () => {
      const { eventId, quarantine, payload } = await readOne('stripe', event(more));
      assert.deepEqual([eventId, quarantine, payload], ['evt_1', reason, null]);
    });
  }

  for (const [what, body, reason] of [
    ['without an id', '{}', 'no_id'],
    ['whose id is a fraction', '{"id":1.5}', 'no_id'],
    ['whose id is empty', '{"id":""}', 'no_id'],
    ['whose id has 201 characters', `{"id":"${'x'.repeat(201)}"}`, 'no_id'],
    ['whose id holds a line end', '{"id":"a\\nb"}', 'no_id'],
    ['that is a list', '[]', 'not_an_object'],
    ['that is null', 'null', 'not_an_object'],
  ] as const) {
    test(`${what} is quarantined under its hash`, async () => {
      const { eventId, quarantine, hash } = await readOne('stripe', body);
      assert.deepEqual([eventId, quarantine], [`sha256:${hash}`, reason]);
    });
  }

  test('whose type is of the wrong kind is quarantined; without one it is fine', async () => {
    assert.equal((await readOne('stripe', '{"id":"a","type":7}')).quarantine, 'bad_type');
    const { quarantine, eventType, occurredAt } = await readOne('stripe', '{"id":"a"}');
    assert.deepEqual([quarantine, eventType, occurredAt], [null, 'unknown', null]);
  });

  test('whose time cannot be read has none, and is kept with its payload', async () => {
    for (const [provider, body] of [
      ['stripe', '{"id":"a","created":"soon"}'],
      ['stripe', '{"id":"a","created":-1}'],
      ['standard', '{"type":"a","timestamp":"soon"}'],
      ['standard', '{"type":"a","timestamp":1e300}'],
      ['standard', '{"type":"a","timestamp":{}}'],
    ] as const) {
      const { occurredAt, quarantine } = await readOne(provider, body);
      assert.deepEqual([occurredAt, quarantine], [null, null], body);
    }
  });

  test('of Standard Webhooks says its time as text, in seconds or in milliseconds', async () => {
    for (const timestamp of ['"2022-05-31T15:56:31.835Z"', '1654012591.835', '1654012591835']) {
      const { occurredAt, quarantine } = await readOne('standard', `{"type":"a","timestamp":${timestamp}}`);
      assert.deepEqual([occurredAt, quarantine], ['2022-05-31T15:56:31.835Z', null], timestamp);
    }
  });

  test('with equal keys or __proto__ is read as JSON.parse reads it, and brings its own text', async () => {
    const twice = await readOne('stripe', '{"id":"first","id":"evt_1","x":"\\u0000","x":1}');
    assert.deepEqual(
      [twice.eventId, twice.payload, twice.quarantine],
      ['evt_1', '{"id":"evt_1","x":1}', null],
    );
    const plain = await readOne('stripe', '{"id":"first","id":"evt_1"}');
    assert.deepEqual([plain.eventId, plain.payload, plain.quarantine], ['evt_1', null, null]);
    const proto = await readOne('stripe', '{"id":"evt_1","__proto__":{"id":"evt_2"}}');
    assert.deepEqual([proto.eventId, proto.quarantine], ['evt_1', null]);
    assert.equal((await readOne('stripe', '{"id":"a","a":1,"a":"\\u0000"}')).quarantine, 'nul_character');
  });

  for (const name of PROVIDER_NAMES.filter((name) => name !== 'twilio' && name !== 'slack')) {
    test(`${name}: a body that is not JSON is an error`, async () => {
      for (const body of ['', '{', '{"a":"\\u0000"', '\ufeff{}', Buffer.from([0x7b, 0xff, 0x7d])])
        await assert.rejects(read(name, body), JsonError);
    });
  }
});

test('a Stripe redelivery has the hash of the first, and another content has not', async () => {
  const hashes = await Promise.all(
    [
      ',"pending_webhooks":2',
      ',"pending_webhooks":10',
      ',"pending_webhooks":0',
      ',"pending_webhooks":2,"livemode":true',
    ].map(async (more) => (await readOne('stripe', event(more))).hash),
  );
  assert.equal(new Set(hashes.slice(0, 3)).size, 1);
  assert.notEqual(hashes[0], hashes[3]);
});

test('a thin event of Stripe has its own id, its type and its time', async () => {
  const thin =
    '{"id":"evt_test_65R","object":"v2.core.event","type":"v1.billing.meter.no_meter_found","livemode":false,"created":"2024-09-26T17:46:22.134Z","context":"acct_1","related_object":{"id":"m_1","type":"billing.meter","url":"/v1/x"}}';
  const { eventId, eventType, occurredAt, quarantine } = await readOne('stripe', thin);
  assert.deepEqual(
    [eventId, eventType, occurredAt, quarantine],
    ['evt_test_65R', 'v1.billing.meter.no_meter_found', '2024-09-26T17:46:22.134Z', null],
  );
});

test('a form of GitHub is the JSON of its payload, and the same event', async () => {
  const json = '{"action":"opened","id":9007199254740993,"title":"a+b & c=d"}';
  const form = await readOne('github', `payload=${encodeURIComponent(json)}`);
  const plain = await readOne('github', json);
  assert.deepEqual({ ...form, payload: null }, plain);
  assert.equal(form.payload, json);
  await assert.rejects(readOne('github', 'payload=%7B'), JsonError);
  await assert.rejects(readOne('github', 'other=%7B%7D'), JsonError);
});

test('the test of a new webhook of Daily is an event, and always the same', async () => {
  const test = await readOne('daily', '{"test":"test"}');
  assert.match(test.eventId, /^test:[0-9a-f]{64}$/);
  assert.deepEqual([test.eventType, test.quarantine], ['test', null]);
  assert.deepEqual(await readOne('daily', '{"test":"test"}'), test);
});

test('an event of Daily without an id is known by its type and content; a body with neither is quarantined', async () => {
  const body = '{"type":"dialout.answered","event_ts":1.5}';
  const call = await readOne('daily', body);
  assert.match(call.eventId, /^dialout\.answered:[0-9a-f]{64}$/);
  assert.deepEqual([call.quarantine, await readOne('daily', body)], [null, call]);
  assert.equal((await readOne('daily', '{"payload":{}}')).quarantine, 'no_id');
});

test('where the id is not signed, the body’s hash is a second key', async () => {
  const first = await readOne('github', '{"action":"opened"}');
  const other = await readOne('github', '{"action":"opened"}', { ...HEADERS, 'x-github-delivery': 'guid-2' });
  assert.deepEqual([first.eventId, other.eventId, first.eventType], ['guid-1', 'guid-2', 'push.opened']);
  assert.equal(first.dedupeHash, other.dedupeHash);
  assert.equal(first.dedupeHash, first.hash);
  assert.equal((await readOne('github', '{}', { ...HEADERS, 'x-github-delivery': '' })).quarantine, 'no_id');
});

describe('Twilio', () => {
  test('a form is read by its fields: order, repeats and escapes change nothing', async () => {
    const first = await readOne('twilio', 'CallSid=CA1&CallStatus=completed&From=%2B1');
    const again = await readOne('twilio', 'From=%2b1&CallStatus=completed&CallSid=CA1&From=%2B1');
    assert.deepEqual(again, first);
    assert.equal(first.payload, '{"CallSid":"CA1","CallStatus":"completed","From":"+1"}');
    assert.deepEqual([first.eventId, first.eventType], ['call:CA1:completed', 'call.completed']);
  });

  test('messages and recordings have ids of their own, and a form with neither is named after its fields', async () => {
    const ids = ['MessageSid=SM1&MessageStatus=sent', 'MessageSid=SM1&SmsStatus=received'];
    const recording = 'CallSid=CA1&CallStatus=completed&RecordingSid=RE1&RecordingStatus=completed';
    const events = await Promise.all([...ids, recording, 'a=1'].map((body) => readOne('twilio', body)));
    assert.deepEqual(events.map(({ eventId }) => eventId).slice(0, 3), [
      'message:SM1:sent',
      'message:SM1:received',
      'recording:RE1:completed',
    ]);
    const { eventId, eventType, quarantine } = events[3] ?? {};
    assert.match(eventId ?? '', /^request:[0-9a-f]{32}$/);
    assert.deepEqual([eventType, quarantine], ['request', null]);
  });

  test('a NUL in a field is quarantined', async () => {
    const { quarantine, eventId } = await readOne('twilio', 'CallSid=CA1&CallStatus=completed&x=%00');
    assert.deepEqual([quarantine, eventId], ['nul_character', 'call:CA1:completed']);
  });
});

describe('WhatsApp', () => {
  const post = (value: string): string =>
    `{"entry":[{"id":"42","changes":[{"field":"messages","value":${value}}]}]}`;

  test('of three updates the poisoned one is quarantined alone', async () => {
    for (const poison of ['"text":"\\u0000"', `"text":${deep(100_000)}`]) {
      const events = await read(
        'whatsapp',
        post(`{"messages":[{"id":"wamid.A","type":"text"},{"id":"wamid.B",${poison}},{"id":"wamid.C"}]}`),
      );
      assert.deepEqual(
        events.map(({ eventId, quarantine }) => [eventId, quarantine !== null]),
        [
          ['message:wamid.A', false],
          ['message:wamid.B', true],
          ['message:wamid.C', false],
        ],
        poison,
      );
    }
  });

  test('an update has the same hash in whatever company it comes', async () => {
    const [alone] = await read('whatsapp', post('{"messages":[{"id":"wamid.A","type":"text"}]}'));
    const [, second] = await read(
      'whatsapp',
      post('{"statuses":[{"id":"wamid.Z","status":"read"}],"messages":[{"id":"wamid.A","type":"text"}]}'),
    );
    assert.deepEqual(second, alone);
    assert.equal(
      alone?.payload,
      '{"business_account_id":"42","phone_number_id":null,"message":{"id":"wamid.A","type":"text"}}',
    );
  });

  test('numbers above 2^53 keep their digits, in the payload and in what names the event', async () => {
    const news = (id: string) =>
      `{"entry":[{"id":"42","time":1,"changes":[{"field":"message_template_status_update","value":{"message_template_id":${id}}}]}]}`;
    const [one, other] = await Promise.all(
      ['9007199254740993', '9007199254740992'].map((id) => readOne('whatsapp', news(id))),
    );
    assert.notEqual(one?.eventId, other?.eventId);
    assert.match(one?.payload ?? '', /"message_template_id":9007199254740993\}/);
    const [message] = await read('whatsapp', post('{"messages":[{"id":9007199254740993}]}'));
    assert.equal(message?.eventId, 'message:9007199254740993');
  });

  test('news without an id is an event named after its content', async () => {
    const news =
      '{"entry":[{"id":"42","time":1700000000,"changes":[{"field":"account_update","value":{}}]}]}';
    const { eventId, eventType, hash, quarantine } = await readOne('whatsapp', news);
    assert.deepEqual([eventId, eventType, quarantine], [`change:${hash}`, 'account_update', null]);
  });

  test('what has no updates, or more than a thousand, is kept as one', async () => {
    for (const body of ['{}', '[]', '{"entry":[]}', '{"entry":{}}'])
      assert.equal((await readOne('whatsapp', body)).quarantine, 'no_updates');
    const many = (count: number): string => post(`{"messages":[${Array(count).fill('{}').join()}]}`);
    assert.equal((await read('whatsapp', many(1_000))).length, 1_000);
    assert.equal((await readOne('whatsapp', many(1_001))).quarantine, 'too_many_updates');
  });

  test('entries, changes and updates of the wrong kind are quarantined one by one', async () => {
    const body =
      '{"entry":[1,{"changes":[null,{"value":{"messages":7}},{"value":{"messages":[{"id":"wamid.A"},[]],"statuses":[{"id":"wamid.A"}]}}]}]}';
    const events = await read('whatsapp', body);
    assert.deepEqual(
      events.map(({ quarantine }) => quarantine),
      ['no_id', 'no_id', 'no_id', 'no_id', null, 'no_id'],
    );
    assert.equal(new Set(events.map(({ eventId }) => eventId)).size, 6);
  });
});

test('Slack: only a url_verification is answered with its challenge', () => {
  const challengeOf = (body: string) =>
    providerNamed('slack')?.challenge?.({
      method: 'POST',
      url: '',
      headers: {},
      body: new TextEncoder().encode(body),
    });
  assert.equal(challengeOf('{"type":"url_verification","challenge":"3eZbrw1a"}'), '3eZbrw1a');
  for (const body of [
    '{"type":"url_verification"}',
    '{"type":"event_callback","challenge":"3eZbrw1a"}',
    '{"type":"url_verification","challenge":7}',
    '{"type":',
    'command=%2Fgo',
  ])
    assert.equal(challengeOf(body), undefined, body);
});

test('Slack: events, commands and interactions each have a signed id', async () => {
  const bodies = [
    '{"event_id":"Ev1","event":{"type":"app_mention"}}',
    'command=%2Fgo&trigger_id=13.1',
    `payload=${encodeURIComponent('{"type":"block_actions","trigger_id":"13.2"}')}`,
    'payload=%7B',
  ];
  const events = await Promise.all(bodies.map((body) => readOne('slack', body)));
  assert.deepEqual(
    events.map(({ eventId, eventType }) => [eventId.replace(/:.*/, ''), eventType]),
    [
      ['Ev1', 'app_mention'],
      ['13.1', 'command'],
      ['13.2', 'block_actions'],
      ['sha256', 'unknown'],
    ],
  );
});

test('every sample is read as the type it was made for, and the same order makes the same event', async () => {
  for (const [provider, types] of Object.entries(SAMPLE_TYPES)) {
    for (const type of types) {
      const order = { type, eventId: 'sample_1', user: 'ann', amount: 1_000, atSec: NOW };
      const sample = sampleOf(provider, order);
      assert.ok(sample);
      const one = await readOne(provider, sample.body, { ...HEADERS, ...sample.headers });
      assert.deepEqual([one.eventType, one.quarantine], [type, null]);
      assert.deepEqual(sampleOf(provider, order), sample);
    }
  }
  assert.equal(sampleOf('constructor', { type: '', eventId: '', user: '', amount: 1, atSec: 1 }), undefined);
});
