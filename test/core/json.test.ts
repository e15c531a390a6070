import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { JsonError, type JsonReason, MAX_DEPTH_LEVELS, parseJson } from '#core/json.ts';

const encoder = new TextEncoder();

function reasonFor(input: string | Uint8Array): JsonReason | 'accepted' {
  try {
    parseJson(typeof input === 'string' ? encoder.encode(input) : input);
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof JsonError, `${error}`);
    return error.reason;
  }
}

const REFUSED: [string, string | Uint8Array, JsonReason][] = [
  ['a byte that is not UTF-8', Uint8Array.of(0x22, 0xff, 0x22), 'invalid_utf8'],
  ['an overlong encoding', Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), 'invalid_utf8'],
  ['a surrogate encoded as UTF-8', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), 'invalid_utf8'],
  ['a byte order mark', '\ufeff{}', 'byte_order_mark'],
  ['an empty body', '', 'syntax'],
  ['only space', '  \n', 'syntax'],
  ['two documents', '{} {}', 'syntax'],
  ['a trailing comma in an object', '{"a":1,}', 'syntax'],
  ['a trailing comma in an array', '[1,]', 'syntax'],
  ['a missing colon', '{"a" 1}', 'syntax'],
  ['an unquoted key', '{a:1}', 'syntax'],
  ['single quotes', "{'a':1}", 'syntax'],
  ['a comment', '{}//', 'syntax'],
  ['a leading zero', '01', 'syntax'],
  ['a leading plus', '+1', 'syntax'],
  ['a bare decimal point', '1.', 'syntax'],
  ['NaN', 'NaN', 'syntax'],
  ['an unknown word', 'nul', 'syntax'],
  ['a bad escape', '"\\x41"', 'syntax'],
  ['a short unicode escape', '"\\u12"', 'syntax'],
  ['a raw line break in a string', '"a\nb"', 'syntax'],
  ['a raw NUL in a string', '"a\0b"', 'syntax'],
  ['an open string', '"abc', 'syntax'],
  ['an open string that ends with a backslash', '"abc\\', 'syntax'],
  ['an open object', '{"a":1', 'syntax'],
  ['no-break space between tokens', '{\u00a0}', 'syntax'],
  ['a key twice', '{"a":1,"b":2,"a":1}', 'duplicate_key'],
  ['a key twice in two spellings', '{"a":1,"\\u0061":1}', 'duplicate_key'],
  ['a key twice further down', '{"x":[{"a":1,"a":2}]}', 'duplicate_key'],
  ['__proto__', '{"__proto__":{}}', 'forbidden_key'],
  ['__proto__ in another spelling', '{"\\u005f_proto__":{}}', 'forbidden_key'],
  ['33 levels', '['.repeat(33) + ']'.repeat(33), 'too_deep'],
  ['a hundred thousand levels', '['.repeat(100_000), 'too_deep'],
  ['an escaped NUL', '"a\\u0000b"', 'nul_character'],
  ['an escaped NUL in a key', '{"a\\u0000":1}', 'nul_character'],
  ['a lone high surrogate', '"\\ud800"', 'lone_surrogate'],
  ['a lone low surrogate', '"\\udc00x"', 'lone_surrogate'],
  ['surrogates in the wrong order', '"\\udc00\\ud800"', 'lone_surrogate'],
  ['2^53', '9007199254740992', 'number_too_large'],
  ['2^53 + 1, which a double cannot hold', '9007199254740993', 'number_too_large'],
  ['-2^53', '-9007199254740992', 'number_too_large'],
  ['a number that Postgres would write out in full', '1e130000', 'number_too_large'],
  ['a number that becomes zero', '1e-400', 'number_not_exact'],
  ['more digits than a double keeps', '0.1234567890123456789', 'number_not_exact'],
];

const ACCEPTED: [string, string, unknown][] = [
  ['an object', ' {"user_id" : "u" ,\n"request_id":"r"} ', { user_id: 'u', request_id: 'r' }],
  ['every kind of value', '[null,true,false,"x",{},[],0]', [null, true, false, 'x', {}, [], 0]],
  ['escapes', '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"', '"\\/\b\f\n\r\té'],
  ['an escaped pair of surrogates', '"\\ud83d\\ude00"', '😀'],
  ['characters beyond ASCII as they are', '"é😀"', 'é😀'],
  ['the largest exact integer', '9007199254740991', 9007199254740991],
  ['the smallest exact integer', '-9007199254740991', -9007199254740991],
  ['a decimal', '-12.50e-1', -1.25],
  ['an integer with an exponent', '15E+2', 1500],
  ['a zero with a large exponent', '0e999', 0],
  ['keys that objects inherit', '{"constructor":1,"toString":2}', { constructor: 1, toString: 2 }],
];

describe('strict JSON', () => {
  for (const [name, input, reason] of REFUSED) {
    it(`refuses ${name} as ${reason}`, () => assert.equal(reasonFor(input), reason));
  }

  for (const [name, input, value] of ACCEPTED) {
    it(`takes ${name}`, () => assert.deepEqual(parseJson(encoder.encode(input)), value));
  }

  it(`takes ${MAX_DEPTH_LEVELS} levels, and siblings do not add up`, () => {
    const deep = '['.repeat(MAX_DEPTH_LEVELS) + ']'.repeat(MAX_DEPTH_LEVELS);
    assert.equal(reasonFor(deep), 'accepted');
    assert.equal(reasonFor(`[${Array(100).fill('{"a":[]}').join()}]`), 'accepted');
  });

  it('reads whatever JSON.stringify wrote, as JSON.parse does', () => {
    const value = fc.jsonValue({ depthSize: 'small', stringUnit: 'grapheme' });
    fc.assert(
      fc.property(value, (original) => {
        const text = JSON.stringify(original);
        const reason = reasonFor(text);
        if (reason === 'accepted') assert.deepEqual(parseJson(encoder.encode(text)), JSON.parse(text));
        else assert.notEqual(reason, 'syntax', text);
      }),
    );
  });

  it('refuses as syntax whatever JSON.parse refuses, and never throws anything else', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      'a',
      '\\',
      'u',
      '1',
      '-',
      '.',
      'e',
      ' ',
      'null',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        const reason = reasonFor(text);
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        if (parses) assert.notEqual(reason, 'syntax', text);
        else assert.notEqual(reason, 'accepted', text);
      }),
      { numRuns: 2000 },
    );
  });
});
