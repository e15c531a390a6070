// What the webhook door lets in, and what it says to the others.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_WEBHOOK_BYTES } from '#core/webhook/routes.ts';
import { readScheme } from '#core/webhook/scheme.ts';
import { SECRET_FAULTS } from '#core/webhook/secrets.ts';
import { BODY, NOW_MS, open } from './routes_support.ts';

describe('a delivery', () => {
  it('is recorded with its bytes and the signature that matched, then answered', async () => {
    const { send, seen, spans } = open();
    const { status, json, headers } = await send();
    assert.deepEqual(
      [status, json],
      [200, { status: 'recorded', events: [{ event_id: 'evt_1', status: 'recorded' }] }],
    );
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    const [delivery] = seen.deliveries;
    assert.deepEqual(
      [delivery?.webhookId, String(delivery?.body), delivery?.events.map(({ eventId }) => eventId)],
      ['the webhook', BODY, ['evt_1']],
    );
    assert.match(delivery?.signature ?? '', /^[0-9a-f]{64}$/);
    assert.deepEqual(
      spans.map(({ subject, startMs, endMs }) => [subject, startMs, endMs]),
      [['row of evt_1', NOW_MS, NOW_MS + 5]],
    );
  });

  it('is taken under any of the endpoint’s secrets, and under no other', async () => {
    assert.equal((await open().send({ secret: 'old-secret-of-the-shop-as-long-as-twilios' })).status, 200);
    const { send, seen, log } = open();
    const { status, code, hint } = await send({ secret: 'other' });
    assert.deepEqual(
      [status, code, hint],
      [401, 'bad_signature', 'bad_signature: no configured secret gives this signature for these bytes.'],
    );
    assert.deepEqual(seen.deliveries, []);
    assert.deepEqual(log.lines, [
      {
        level: 'info',
        message: 'signature refused',
        fields: {
          webhook_id: 'the webhook',
          endpoint: 'shop',
          reason: 'bad_signature',
          detail: 'none of 1 signatures fits any of 2 secrets',
        },
      },
    ]);
  });

  const REFUSED: [what: string, headers: Record<string, string>, hint: string][] = [
    [
      'without a signature',
      { 'stripe-signature': '' },
      'missing_signature: the signature header is not there.',
    ],
    [
      'with a strange signature',
      { 'stripe-signature': 'x' },
      'malformed_signature: the signature header is not in its canonical form.',
    ],
  ];
  for (const [what, headers, expected] of REFUSED)
    it(`${what} is told so`, async () => {
      const { status, hint } = await open().send({ headers });
      assert.deepEqual([status, hint], [401, expected]);
    });

  it('that is too old is told so, and one of the same second is taken', async () => {
    const { send, seen } = open();
    seen.nowMs = NOW_MS + 300_000;
    assert.equal((await send()).status, 200);
    seen.nowMs = NOW_MS + 300_200;
    assert.deepEqual((await send()).hint, 'stale: the signed time is too far from now.');
  });

  it('of Twilio with another body is told so', async () => {
    const hash = '0'.repeat(64);
    const public_url = `https://shop.example/?bodySHA256=${hash}`;
    const { hint } = await open({ provider: 'twilio', public_url }).send({ query: `bodySHA256=${hash}` });
    assert.equal(hint, 'body_hash_mismatch: the body is not the one that was signed.');
  });

  it('to an endpoint that is unknown or switched off finds nothing', async () => {
    const { ask, seen } = open();
    assert.equal((await ask({ path: '/webhooks/none' })).status, 404);
    const off = await open({ is_active: false }).send();
    assert.deepEqual([off.status, off.code], [404, 'unknown_endpoint']);
    assert.deepEqual(seen.deliveries, []);
  });

  it('to an endpoint of an unknown provider is refused, and the log says why', async () => {
    const { send, warnings } = open({ provider: 'none' });
    const { status, hint } = await send();
    assert.deepEqual([status, hint], [401, 'no_secret: the endpoint has no secret to compare with.']);
    assert.deepEqual(warnings(), [
      {
        level: 'error',
        message: 'the endpoint names an unknown provider',
        fields: { webhook_id: 'the webhook', provider: 'none' },
      },
    ]);
  });

  it('to an endpoint without any secret is refused; with one of two missing it is taken, and the log says so', async () => {
    const notSet = 'is not set';
    for (const [secret_names, status, faults] of [
      [['NONE', 'EMPTY'], 401, [notSet, notSet]],
      [['NONE', 'NEW'], 200, [notSet]],
      [['SHORT'], 401, ['is too short to be a secret']],
      [['FORBIDDEN'], 401, [SECRET_FAULTS.not_allowed]],
    ] as const) {
      const { send, warnings } = open({ secret_names });
      const answer = await send();
      assert.equal(answer.status, status);
      if (status === 401) assert.equal(answer.hint, 'no_secret: the endpoint has no secret to compare with.');
      assert.deepEqual(
        warnings(),
        faults.map((fault, at) => ({
          level: 'error',
          message: 'a secret cannot be used',
          fields: { webhook_id: 'the webhook', endpoint: 'shop', secret: secret_names[at], fault },
        })),
      );
    }
    const { send, warnings } = open();
    await send();
    assert.deepEqual(warnings(), []);
  });
});

describe('a body', () => {
  const statusWith = async (type: string | string[] | undefined, provider = 'stripe', more = {}) =>
    (await open({ provider }).send({ headers: { 'content-type': type as string, ...more } })).status;

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/JSON ; charset=utf-8 ',
  ])
    it(`of type ${type} is taken`, async () => assert.equal(await statusWith(type), 200));

  for (const type of [
    undefined,
    '',
    'text/json',
    'x-application/json',
    'application/jsonl',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; x=1',
    'application/x-www-form-urlencoded',
    ['application/json', 'application/json'],
  ])
    it(`of type ${type} is not`, async () => assert.equal(await statusWith(type), 415));

  it('that is a form is taken from providers that send forms', async () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'application/x-www-form-urlencoded; charset=utf-8',
    ]) {
      assert.equal(await statusWith(type, 'slack'), 200);
      assert.equal(await statusWith(`x${type}`, 'slack'), 415);
      assert.equal(await statusWith(`${type}x`, 'slack'), 415);
    }
  });

  it('that is packed is never inflated', async () => {
    assert.equal(await statusWith('application/json', 'stripe', { 'content-encoding': 'gzip' }), 415);
  });

  it('may be as large as its endpoint takes, and no larger', async () => {
    const padded = (bytes: number) => BODY.replace('}', `,"x":"${'x'.repeat(bytes - BODY.length - 7)}"}`);
    assert.equal(padded(1_000).length, 1_000);
    assert.equal((await open().send({ body: padded(1_000) })).status, 200);
    const { send, seen } = open();
    assert.deepEqual((await send({ body: padded(1_001) })).code, 'too_large');
    assert.deepEqual(seen.deliveries, []);
    assert.equal(MAX_WEBHOOK_BYTES, 10_485_760);
    for (const { maxBodyBytes } of open().webhooks.routes()) assert.equal(maxBodyBytes, MAX_WEBHOOK_BYTES);
  });

  it('that is not JSON is kept under its hash, and refused', async () => {
    const { send, seen, warnings, metrics } = open();
    const { status, code, hint } = await send({ body: '{' });
    assert.deepEqual([status, code], [400, 'invalid_json']);
    assert.match(hint ?? '', /^The body was kept and refused: .+\.$/);
    const hash = '021fb596db81e6d02bf3d2586ee3981fe519f275c0ac9ca76bbcf2ebb4097d96';
    assert.deepEqual(seen.deliveries[0]?.events, [
      {
        eventId: `invalid:${hash}`,
        eventType: 'unknown',
        occurredAt: null,
        payload: null,
        hash,
        dedupeHash: null,
        quarantine: 'syntax',
      },
    ]);
    assert.deepEqual(warnings(), [
      {
        level: 'warn',
        message: 'event quarantined',
        fields: { event_id: `invalid:${hash}`, webhook_id: 'the webhook', reason: 'syntax' },
      },
    ]);
    assert.deepEqual(metrics.lines, [
      'webhook_dead_letter_total webhook_id=the webhook provider=stripe reason=quarantine 1',
    ]);
  });

  it('that cannot be read before it is proven is not kept', async () => {
    const { ask, seen } = open({ provider: 'twilio', max_body_bytes: 10_000 });
    const refused = await ask({
      body: 'a=1&'.repeat(1_001),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        host: 'localhost',
        'x-twilio-signature': `${'A'.repeat(27)}=`,
      },
    });
    assert.equal(refused.status, 400);
    assert.match(JSON.parse(refused.text).error.hint, /^The body was refused: .*too_many_fields.*\.$/);
    assert.deepEqual(seen.deliveries, []);
  });

  it('with a scheme of its endpoint’s own is verified by it', async () => {
    const scheme = readScheme({ header: 'x-sig', id: '/id' });
    const { send } = open({ provider: 'hmac', scheme });
    assert.equal((await send()).status, 200);
  });
});
