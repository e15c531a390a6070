import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { shortened, storable, textOf } from '#core/text.ts';

describe('the text of an error', () => {
  it('is its message, and that of anything else how it reads', () => {
    assert.deepEqual([new Error('why'), 'a text', 7, undefined, { code: 1 }].map(textOf), [
      'why',
      'a text',
      '7',
      'undefined',
      '[object Object]',
    ]);
  });

  it('is there even where what was thrown cannot be read', () => {
    const mute = {
      toString() {
        throw new Error('not me');
      },
    };
    assert.equal(textOf(mute), 'a value that cannot be turned into text was thrown');
  });

  it('is storable with a mark for a NUL and for half a character', () => {
    assert.equal(storable('a\0b\0c'), 'a\ufffdb\ufffdc');
    assert.equal(storable('\ud83d and \udc00'), '\ufffd and \ufffd');
    assert.equal(storable('whole \u{1f600} and ü'), 'whole \u{1f600} and ü');
  });

  it('is cut by characters, and holds none that cannot be stored', () => {
    for (const [text, expected] of [
      ['short', 'short'],
      ['x'.repeat(501), 'x'.repeat(500)],
      ['😀'.repeat(600), '😀'.repeat(500)],
      [`x${'😀'.repeat(600)}`, `x${'😀'.repeat(499)}`],
      [`${'x'.repeat(499)}😀😀`, `${'x'.repeat(499)}😀`],
      ['half \ud83d and \ude00 half', 'half \ufffd and \ufffd half'],
      ['nul \0', 'nul \ufffd'],
      ['', ''],
    ] as const) {
      assert.equal(shortened(text, 500), expected);
      assert.doesNotThrow(() => encodeURIComponent(shortened(text, 500)), 'half a character');
    }
  });
});
