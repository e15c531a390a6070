// The provider `hmac`, for services without one of their own: with any scheme it verifies what it signs, and nothing else.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import type { JsonValue } from '#core/json.ts';
import { utf8 } from '#core/webhook/bytes.ts';
import { hmac } from '#core/webhook/providers/hmac.ts';
import { follow, isPointer, readScheme } from '#core/webhook/scheme.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { NOW, SCHEME } from './cases.ts';

const BODY = '{"id":"evt_1","kind":"made"}';
const ASKED = { method: 'POST', url: '', body: utf8(BODY) };

const mac = (hash: string, text: string) => createHmac(hash, 'secret').update(text);

const SCHEMES: [what: string, scheme: { [name: string]: JsonValue }, headers: Record<string, string>][] = [
  ['of two fields', {}, { 'x-sig': mac('sha256', BODY).digest('hex') }],
  [
    'with SHA-1 and a prefix',
    { algorithm: 'sha1', prefix: 'sha1=' },
    { 'x-sig': `sha1=${mac('sha1', BODY).digest('hex')}` },
  ],
  ['in base64', { encoding: 'base64' }, { 'x-sig': mac('sha256', BODY).digest('base64') }],
  [
    'with a time before the body',
    { timestamp_header: 'x-time' },
    { 'x-sig': mac('sha256', `${NOW}.${BODY}`).digest('hex'), 'x-time': String(NOW) },
  ],
  [
    'with a time behind the body',
    { timestamp_header: 'x-time', signed: '{body}|{timestamp}' },
    { 'x-sig': mac('sha256', `${BODY}|${NOW}`).digest('hex'), 'x-time': String(NOW) },
  ],
  [
    'with text around the body',
    { signed: 'a-{body}-z' },
    { 'x-sig': mac('sha256', `a-${BODY}-z`).digest('hex') },
  ],
];

describe('a signature described by data', () => {
  for (const [what, fields, headers] of SCHEMES)
    it(`${what} is what any HMAC makes of it, and is taken`, async () => {
      const scheme = readScheme({ header: 'x-sig', id: '/id', ...fields });
      const context = { port: nodeHmac, nowSec: NOW, scheme };
      assert.deepEqual(await hmac.sign(ASKED, 'secret', context), headers);
      const verify = (changed: Record<string, string>) =>
        hmac.verify({ ...ASKED, headers: { ...headers, ...changed } }, ['secret'], context);
      const signature = headers['x-sig']?.slice(scheme.prefix.length);
      assert.deepEqual(await verify({}), { ok: true, secret: 0, signature });
      if (headers['x-time'] === undefined) return;
      const later = await verify({ 'x-time': String(NOW + 1) });
      assert.equal(!later.ok && later.reason, 'bad_signature');
    });

  it('that holds the id is bound to it', async () => {
    const scheme = readScheme({ header: 'x-sig', id: 'x-id', signed: '{id}.{body}' });
    const context = { port: nodeHmac, nowSec: NOW, scheme };
    const headers = await hmac.sign(ASKED, 'secret', context);
    const id = headers['x-id'] ?? '';
    assert.match(id, /^evt_[0-9a-f]{32}$/);
    assert.equal(headers['x-sig'], mac('sha256', `${id}.${BODY}`).digest('hex'));
    assert.equal((await hmac.verify({ ...ASKED, headers }, ['secret'], context)).ok, true);
    const other = { ...headers, 'x-id': 'evt_2' };
    assert.equal((await hmac.verify({ ...ASKED, headers: other }, ['secret'], context)).ok, false);
  });

  it('has the tolerance of its scheme', async () => {
    const scheme = readScheme({ header: 'x-sig', id: '/id', timestamp_header: 'x-time', tolerance_sec: 10 });
    const headers = await hmac.sign(ASKED, 'secret', { port: nodeHmac, nowSec: NOW, scheme });
    const at = async (nowSec: number) =>
      (await hmac.verify({ ...ASKED, headers }, ['secret'], { port: nodeHmac, nowSec, scheme })).ok;
    assert.deepEqual([await at(NOW + 10), await at(NOW + 11)], [true, false]);
  });

  it('has the type that its pointer finds, or none', async () => {
    const typeOf = async (type: string | null) => {
      const scheme = readScheme({ header: 'x-sig', id: '/id', type });
      const [event] = await hmac.read({ ...ASKED, headers: {} }, { port: nodeHmac, nowSec: NOW, scheme });
      return event?.eventType;
    };
    assert.deepEqual([await typeOf('/kind'), await typeOf(null)], ['made', 'unknown']);
  });

  it('is checked once for each scheme, however often it is used', async () => {
    let reads = 0;
    const scheme = { ...SCHEME };
    Object.defineProperty(scheme, 'header', {
      enumerable: true,
      get: () => {
        reads++;
        return 'x-sig';
      },
    });
    const use = () => hmac.verify({ ...ASKED, headers: {} }, ['00'], { port: nodeHmac, nowSec: NOW, scheme });
    await use();
    const first = reads;
    await use();
    assert.ok(first > 0);
    assert.equal(reads, first);
  });
});

describe('a scheme is refused with the reason', () => {
  const once = 'signed may hold {timestamp}, {id} and {body}, each once.';
  const between =
    'signed needs a sign such as . or : between two parts: else one could borrow from the other.';
  for (const [change, message] of [
    [{ signed: '{body}.{body}' }, once],
    [{ signed: '{timestamp}.{body}.{url}' }, once],
    [{ signed: '{timestamp}.{body}}' }, once],
    [{ signed: '{timestamp}.{{body}' }, once],
    [{ signed: '{timestamp}{body}' }, between],
    [{ signed: '{timestamp}x0Z{body}' }, between],
    [{ signed: '{timestamp}.' }, 'signed must hold {body}: else anyone could change it.'],
    [
      { signed: '{body}' },
      'signed holds {timestamp} exactly where there is a timestamp_header: an unsigned time proves nothing.',
    ],
    [{ id: 'a b' }, 'id must be a JSON pointer such as /id or the name of a header.'],
    [{ id: '/id' }, 'signed may hold {id} only where id is a header.'],
  ] as const)
    it(`${JSON.stringify(change)}: ${message.slice(0, 40)}…`, () =>
      assert.throws(() => readScheme({ ...SCHEME, ...change }), { name: 'SchemaError', message }));
});

describe('a pointer', () => {
  it('begins with a slash, and has at most eight parts', () => {
    for (const text of ['/', '/a', '/a/b~0~1', '/1'.repeat(8)]) assert.equal(isPointer(text), true, text);
    for (const text of ['', 'a', '/a~', '/a~2', 'x/a', '/1'.repeat(9)])
      assert.equal(isPointer(text), false, text);
  });

  it('finds what stands there, and undefined where nothing does', () => {
    const value = { a: { b: null, 'c/d': [7], '~1': 'tilde' }, e: 'text' };
    assert.equal(follow('/a/b', value), null);
    assert.equal(follow('/a/c~1d/0', value), 7);
    assert.equal(follow('/a/~01', value), 'tilde');
    for (const pointer of ['/x', '/a/b/c', '/e/length', '/e/0', '/a/c~1d/1', '/a/toString'])
      assert.equal(follow(pointer, value), undefined, pointer);
  });
});
