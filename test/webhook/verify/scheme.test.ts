import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SchemaError } from '#core/schema.ts';
import { hmac } from '#core/webhook/providers/hmac.ts';
import { readScheme } from '#core/webhook/scheme.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { NOW, SCHEME } from './cases.ts';

test('a scheme of two fields gets the usual rest', () => {
  assert.deepEqual(readScheme({ header: 'x-sig', id: '/id' }), {
    header: 'x-sig',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
    timestamp_header: null,
    signed: '{body}',
    id: '/id',
    type: null,
    tolerance_sec: 300,
    secret_encoding: 'utf8',
  });
  assert.equal(readScheme({ header: 'x', id: '/id', timestamp_header: 'y' }).signed, '{timestamp}.{body}');
  assert.deepEqual(readScheme({ ...SCHEME }), SCHEME);
});

for (const [what, change] of Object.entries({
  'signs nothing of the body': { signed: '{timestamp}' },
  'signs the body twice': { signed: '{timestamp}{body}{body}' },
  'signs something unknown': { signed: '{timestamp}{body}{url}' },
  'signs two parts without a sign between them': { signed: '{id}:{timestamp}{body}' },
  'signs two parts with a digit between them': { signed: '{id}:{timestamp}0{body}' },
  'has a stray brace': { signed: '{timestamp}{body}}' },
  'reads a time that is not signed': { signed: '{body}' },
  'signs a time that is nowhere': { timestamp_header: null },
  'signs an id of the body': { id: '/id' },
  'has a broken algorithm': { algorithm: 'md5' },
  'takes any time': { tolerance_sec: 0 },
  'takes times of a year': { tolerance_sec: 31_536_000 },
  'has an upper-case header': { header: 'X-Sig' },
  'has an id that is neither pointer nor header': { id: 'a b' },
  'has a type that is not a pointer': { type: 'type' },
  'has an unknown field': { verify: false },
})) {
  test(`a scheme that ${what} is refused`, () => {
    assert.throws(() => readScheme({ ...SCHEME, ...change }), SchemaError);
  });
}

test('a pointer follows own fields only, with its escapes', async () => {
  const scheme = readScheme({ header: 'x-sig', id: '/a~1b/~0/0', type: '/__proto__/name' });
  const body = Buffer.from('{"a/b":{"~":["evt_1"]}}');
  const context = { port: nodeHmac, nowSec: NOW, scheme };
  const [event] = await hmac.read({ method: 'POST', url: '', headers: {}, body }, context);
  assert.deepEqual([event?.eventId, event?.eventType, event?.dedupeHash], ['evt_1', 'unknown', null]);
});

test('an id from a header that is not signed gets the body’s hash as a second key', async () => {
  const scheme = readScheme({ header: 'x-sig', id: 'x-id' });
  const asked = { method: 'POST', url: '', headers: { 'x-id': 'evt_1' }, body: Buffer.from('{}') };
  const [event] = await hmac.read(asked, { port: nodeHmac, nowSec: NOW, scheme });
  assert.equal(event?.eventId, 'evt_1');
  assert.equal(event?.dedupeHash, event?.hash);
});
