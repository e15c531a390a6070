import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fromBase64, fromHex, prepend, toBase64, toHex, utf8 } from '#core/webhook/bytes.ts';
import { formAsObject, readForm } from '#core/webhook/form.ts';
import { sameBytes, webHmac } from '#core/webhook/hmac.ts';

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);

describe('bytes and their spellings', () => {
  it('are the same after a way through hex and through base64, whatever they are', () => {
    for (const bytes of [EVERY_BYTE, EVERY_BYTE.subarray(0, 1), new Uint8Array(0)]) {
      assert.deepEqual(fromHex(toHex(bytes)), bytes);
      assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
      assert.equal(toHex(bytes), Buffer.from(bytes).toString('hex'));
      assert.equal(toBase64(bytes), Buffer.from(bytes).toString('base64'));
    }
  });

  it('have one hex spelling: lower case, two digits a byte, nothing around it', () => {
    for (const text of ['0', 'abc', 'AB', '0g', ' ab', 'ab\n', '0x12', 'a-'])
      assert.equal(fromHex(text), undefined, text);
  });

  it('have one base64 spelling: padded, no spaces, no stray bits', () => {
    for (const text of ['AA', 'AA=', ' AAA=', 'AAB=', 'AA-_', '*', 'ü'])
      assert.equal(fromBase64(text), undefined, text);
  });

  it('stand behind a text in UTF-8; without one they are the very same', () => {
    const body = utf8('body');
    assert.deepEqual(prepend('ü.', body), utf8('ü.body'));
    assert.equal(prepend('', body), body);
  });
});

describe('the comparison of bytes', () => {
  it('is true for equal ones only, longer and shorter ones included', () => {
    assert.equal(sameBytes(utf8('abc'), utf8('abc')), true);
    assert.equal(sameBytes(new Uint8Array(0), new Uint8Array(0)), true);
    for (const other of ['abd', 'bbc', 'abcd', 'ab', ''])
      assert.equal(sameBytes(utf8('abc'), utf8(other)), false, other);
    // What lies behind the end reads as zero in an exclusive or.
    assert.equal(sameBytes(Uint8Array.of(1), Uint8Array.of(1, 0)), false);
    assert.equal(sameBytes(Uint8Array.of(1, 0), Uint8Array.of(1)), false);
  });
});

describe('WebCrypto as port', () => {
  it('never lets a key out again', async () => {
    const { importKey } = crypto.subtle;
    const extractable: unknown[] = [];
    crypto.subtle.importKey = (...args: unknown[]) => {
      extractable.push(args[3]);
      return Reflect.apply(importKey, crypto.subtle, args);
    };
    try {
      await webHmac.hmac('SHA-256', utf8('key'), utf8('message'));
    } finally {
      crypto.subtle.importKey = importKey;
    }
    assert.deepEqual(extractable, [false]);
  });
});

describe('a form', () => {
  it('is read name by name, sorted, each value once', () => {
    assert.deepEqual(
      [...readForm(utf8('b=2&a=z&a=y&b=2&c'))],
      [
        ['a', ['y', 'z']],
        ['b', ['2']],
        ['c', ['']],
      ],
    );
  });

  it('keeps a byte order mark: without it two bodies would pass under one signature', () => {
    assert.deepEqual([...readForm(utf8('\ufeffa=1')).keys()], ['\ufeffa']);
  });

  it('becomes an object of texts, with lists where a name has several values', () => {
    const object = formAsObject(readForm(utf8('a=1&b=2&b=3&__proto__=x')));
    assert.deepEqual(Object.entries(object), [
      ['__proto__', 'x'],
      ['a', '1'],
      ['b', ['2', '3']],
    ]);
  });

  it('that begins with the mark between fields is counted like any other', () => {
    assert.throws(() => readForm(utf8('&'.repeat(1_000))), /too_many_fields/);
    assert.equal(readForm(utf8('&'.repeat(999))).size, 0);
  });
});
