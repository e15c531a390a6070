// Numbers that a double would round pass through JavaScript with all their digits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  digitsIn,
  isTooLong,
  MAY_ROUND,
  markNumbers,
  parseJsonb,
  parseWithDigits,
  stringifyMarked,
} from '#core/digits.ts';

const roundTrip = (text: string) => stringifyMarked(JSON.parse(markNumbers(text)));

describe('a number', () => {
  for (const literal of [
    '9007199254740992',
    '-9007199254740993',
    '123456789012345678901234567890',
    '0.1000000000000000055',
    '1e400',
  ])
    it(`such as ${literal} comes out as it went in`, () => {
      assert.equal(roundTrip(literal), literal);
      assert.equal(
        roundTrip(`{"a":[${literal},"${literal}"],"b":-1}`),
        `{"a":[${literal},"${literal}"],"b":-1}`,
      );
    });

  it('that a double holds is left alone', () => {
    for (const text of ['0', '-0.5', '9007199254740991', '1.50', '[1,2]', '{"a":1e3}'])
      assert.equal(markNumbers(text), text);
  });

  it('in a text is left alone, whatever stands before it', () => {
    for (const text of [
      '"9007199254740993"',
      '"\\\\\\"9007199254740993"',
      '{"9007199254740993":"a\\\\"}',
      '"\\\\"',
    ])
      assert.equal(markNumbers(text), text);
  });

  it('cannot be written by a sender: the mark is another in each process', () => {
    const [mark = ''] = markNumbers('9007199254740993').split('9007');
    assert.match(mark, /^"number [0-9a-f-]{36} $/);
    assert.equal(digitsIn('number 1'), undefined);
    assert.equal(digitsIn(JSON.parse(markNumbers('9007199254740993'))), '9007199254740993');
  });

  it('is too long to be kept beyond a thousand digits', () => {
    for (const [digits, isLong] of [
      ['9'.repeat(1_000), false],
      ['9'.repeat(1_001), true],
      ['1e1000', false],
      ['1E+1001', true],
      ['1e-1001', true],
    ] as const)
      assert.equal(isTooLong(digits), isLong, digits.slice(0, 10));
  });

  it('comes to a reader as the text of its digits', () => {
    assert.deepEqual(parseWithDigits('{"a":9007199254740993,"b":1.5,"c":"x"}'), {
      a: '9007199254740993',
      b: 1.5,
      c: 'x',
    });
    assert.deepEqual(parseWithDigits('[1]'), [1]);
  });

  it('is found wherever a number can stand, and not in an id', () => {
    for (const digits of [
      '9007199254740993',
      '-9007199254740993',
      '1234567890.123456789',
      '12345678901234567890',
    ]) {
      for (const at of [digits, `[${digits}]`, `[1, ${digits}]`, `{"a": ${digits}}`, `{"a":${digits}}`]) {
        assert(MAY_ROUND.test(at), at);
        assert(JSON.stringify(parseJsonb(at)).includes(`"${digits}"`), at);
      }
    }
    for (const exponent of ['1e400', '[1E400]', '{"a": -1.5e400}'])
      assert(MAY_ROUND.test(exponent), exponent);
    const id = '{"claim_id": "01a1e5a8-1ac5-7b26-9882-fe081f16d88f"}';
    assert(!MAY_ROUND.test(id));
    assert.deepEqual(parseJsonb(id), JSON.parse(id));
  });
});

it('JSON of doubles comes out as JSON.stringify writes it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      assert.equal(JSON.stringify(JSON.parse(roundTrip(text))), JSON.stringify(JSON.parse(text)));
    }),
  );
});

it('a long text full of escapes is read to its end', () => {
  const text = `["${'\\\\u00e9'.repeat(500_000)}",9007199254740993]`;
  assert.ok(markNumbers(text).endsWith('9007199254740993"]'));
});
