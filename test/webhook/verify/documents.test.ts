// From bytes to a document: what is read, what is kept apart, and which times there are.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JsonError } from '#core/json.ts';
import { utf8 } from '#core/webhook/bytes.ts';
import { webHmac } from '#core/webhook/hmac.ts';
import {
  decode,
  eventFrom,
  findUnkeepable,
  hashOf,
  isoOfSeconds,
  isoOfText,
  isTooDeep,
  NOTHING,
  parseMarked,
  readDocument,
} from '#core/webhook/read.ts';

const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

describe('a document', () => {
  it('that only looks suspicious is its own payload', () => {
    for (const text of [
      '{"a":1.5e3}',
      '{"a":123456789012345.5}',
      '"\\ud83d\\ude00"',
      '{"a":"12345678901234567890"}',
    ]) {
      const { payload, quarantine } = readDocument(text);
      assert.deepEqual([payload, quarantine], [null, null], text);
    }
  });

  it('with numbers that a double would round is its own payload, and Postgres reads their digits', () => {
    for (const text of [
      '{"a":9007199254740993}',
      '[-12345678901234567890]',
      '{"a":0.1000000000000000055}',
      '1e22',
    ]) {
      const { payload, quarantine } = readDocument(text);
      assert.deepEqual([payload, quarantine], [null, null], text);
    }
  });

  it('with two equal keys, of which jsonb could not read the first, brings what is left of it, digit by digit', () => {
    const { payload, quarantine } = readDocument('{"a":"\\u0000","a":1.5e3,"n":9007199254740993}');
    assert.deepEqual([payload, quarantine], ['{"a":1500,"n":9007199254740993}', null]);
    const long = readDocument('{"a":1e-130000,"a":9007199254740993}');
    assert.deepEqual([long.payload, long.quarantine], ['{"a":9007199254740993}', null]);
    const proto = readDocument('{"__proto__":"\\u0000","__proto__":1,"a":2}');
    assert.deepEqual([proto.payload, proto.quarantine], ['{"__proto__":1,"a":2}', null]);
  });

  for (const [what, bytes, reason] of [
    ['no UTF-8', Uint8Array.of(0x22, 0xff, 0x22), 'invalid_utf8'],
    ['a byte order mark', utf8('\ufeff{}'), 'byte_order_mark'],
    ['no JSON', utf8('{'), 'syntax'],
  ] as const)
    it(`that is or has ${what} cannot be read: ${reason}`, () =>
      assert.throws(
        () => parseMarked(decode(bytes)),
        (error) => error instanceof JsonError && error.reason === reason && error.position === 0,
      ));
});

describe('what jsonb cannot keep', () => {
  for (const [value, reason] of [
    [Number.MAX_SAFE_INTEGER + 1, undefined],
    [parseMarked('9007199254740993'), undefined],
    [parseMarked(`1${'0'.repeat(999)}`), undefined],
    [parseMarked(`1${'0'.repeat(1_000)}`), 'number_too_large'],
    [parseMarked('1e1000'), undefined],
    [parseMarked('1e-1000'), undefined],
    [parseMarked('1e1001'), 'number_too_large'],
    [parseMarked('1E-1001'), 'number_too_large'],
    [{ a: [true, null, 'b'] }, undefined],
    [{ 'a\0': 1 }, 'nul_character'],
    [{ a: ['\ud800'] }, 'lone_surrogate'],
    [nested(32), undefined],
    [nested(33), 'too_deep'],
  ] as const)
    it(`${JSON.stringify(value).slice(0, 40)}: ${reason}`, () => assert.equal(findUnkeepable(value), reason));

  it('is too deep from 33 levels on, whatever lies beside', () => {
    assert.equal(isTooDeep(nested(32)), false);
    assert.equal(isTooDeep([null, 'text', nested(32)]), true);
    assert.equal(isTooDeep(null), false);
  });
});

describe('a time', () => {
  it('in seconds lies between 1970 and the end of 9999; a missing one is null, any other undefined', () => {
    assert.equal(isoOfSeconds(0), '1970-01-01T00:00:00.000Z');
    assert.equal(isoOfSeconds(1.5), '1970-01-01T00:00:01.500Z');
    assert.equal(isoOfSeconds(253_402_300_799), '9999-12-31T23:59:59.000Z');
    for (const none of [null, undefined]) assert.equal(isoOfSeconds(none), null);
    for (const wrong of [-1, 253_402_300_800, Number.NaN, '0', true, []])
      assert.equal(isoOfSeconds(wrong), null, String(wrong));
  });

  it('in words lies there too', () => {
    assert.equal(isoOfText('1970-01-01T00:00:00Z'), '1970-01-01T00:00:00.000Z');
    assert.equal(isoOfText('9999-12-31T23:59:59Z'), '9999-12-31T23:59:59.000Z');
    for (const none of [null, undefined]) assert.equal(isoOfText(none), null);
    for (const wrong of ['1969-12-31T23:59:59Z', '+010000-01-01T00:00:00Z', 'soon', '', 2026, []])
      assert.equal(isoOfText(wrong), null, String(wrong));
  });
});

describe('an event whose id is a number', () => {
  const idOf = (text: string) =>
    eventFrom(
      { id: parseMarked(text), type: 't', occurredAt: null },
      { payload: '{}', hash: 'h', quarantine: null },
    );

  it('is named by all its digits', () => {
    for (const id of ['1', '-7', '9007199254740993', '12345678901234567890'])
      assert.deepEqual([idOf(id).eventId, idOf(id).quarantine], [id, null]);
  });

  it('has none where that is not an integer', () => {
    for (const id of ['1.5', '1e22', '0.1000000000000000055', 'true'])
      assert.equal(idOf(id).quarantine, 'no_id', id);
  });
});

describe('an event', () => {
  const content = { payload: '{}', hash: 'h', quarantine: null };

  it('that says nothing is quarantined for its id, and has no time', () => {
    assert.deepEqual(eventFrom(NOTHING, content), {
      eventId: 'sha256:h',
      eventType: 'unknown',
      occurredAt: null,
      payload: null,
      hash: 'h',
      dedupeHash: null,
      quarantine: 'no_id',
    });
  });

  it('without a type, or with null for one, is fine', () => {
    for (const type of [undefined, null]) {
      const { eventType, quarantine, payload } = eventFrom({ id: 'a', type, occurredAt: null }, content);
      assert.deepEqual([eventType, quarantine, payload], ['unknown', null, '{}']);
    }
  });

  it('has one hash, whether its content is text or bytes', async () => {
    const hash = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
    assert.equal(await hashOf(webHmac, 'hello'), hash);
    assert.equal(await hashOf(webHmac, utf8('hello')), hash);
  });
});
