import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '#core/json.ts';
import { check, type FromSchema, type Schema, SchemaError } from '#core/schema.ts';

const ORDER = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 2, maxLength: 4 },
    code: { type: 'string', pattern: '^[a-z]+$' },
    count: { type: 'integer', minimum: 1, maximum: 10 },
    gift: { type: 'boolean' },
    note: { type: ['string', 'null'] },
    tags: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, maxItems: 2 },
    inner: {
      type: 'object',
      properties: { a: { type: 'integer' } },
      required: ['a'],
      additionalProperties: false,
    },
  },
  required: ['name'],
  additionalProperties: false,
} as const satisfies Schema;

const REFUSED: [string, JsonValue, RegExp][] = [
  ['an array in the place of an object', [], /the body must be of type object/],
  ['null in the place of an object', null, /the body must be of type object/],
  ['a missing required field', {}, /name is missing/],
  ['a required field that only the prototype has', { constructor: 1 }, /name is missing/],
  ['an unknown field', { name: 'ab', extra: 1 }, /unknown field; known are name, code/],
  ['a field that only the prototype of the schema has', { name: 'ab', toString: 1 }, /unknown field/],
  ['a number in the place of a string', { name: 12 }, /name must be of type string/],
  ['null where it is not allowed', { name: null }, /name must be of type string/],
  ['a string that is too short', { name: 'a' }, /name must have at least 2 characters/],
  ['a single character of two units as two', { name: '😀' }, /name must have at least 2 characters/],
  ['a string that is too long', { name: 'abcde' }, /name must have at most 4 characters/],
  ['a string against the pattern', { name: 'ab', code: 'A1' }, /code must match/],
  ['a fraction', { name: 'ab', count: 1.5 }, /count must be of type integer/],
  ['a number as text', { name: 'ab', count: '5' }, /count must be of type integer/],
  ['an integer below the minimum', { name: 'ab', count: 0 }, /count must be at least 1/],
  ['an integer above the maximum', { name: 'ab', count: 11 }, /count must be at most 10/],
  ['a word in the place of a boolean', { name: 'ab', gift: 'true' }, /gift must be of type boolean/],
  ['a number where text or null may stand', { name: 'ab', note: 1 }, /note must be of type string or null/],
  ['an object in the place of an array', { name: 'ab', tags: {} }, /tags must be of type array/],
  ['too few items', { name: 'ab', tags: [] }, /tags must have at least 1/],
  ['too many items', { name: 'ab', tags: ['a', 'b', 'c'] }, /tags must have at most 2/],
  ['a wrong item', { name: 'ab', tags: ['a', ''] }, /tags\[1\] must have at least 1/],
  ['a missing field further down', { name: 'ab', inner: {} }, /a is missing/],
];

describe('the schema check', () => {
  for (const [name, value, message] of REFUSED) {
    it(`refuses ${name}`, () => {
      assert.throws(
        () => check(ORDER, value),
        (error) => error instanceof SchemaError && message.test(error.message),
      );
    });
  }

  it('returns the very value where it fits, and counts characters instead of units', () => {
    const value = {
      name: '😀😀😀😀',
      code: 'ab',
      count: 10,
      gift: false,
      note: null,
      tags: ['x'],
      inner: { a: 0 },
    };
    assert.equal(check(ORDER, value), value);
  });

  it('gives the value its type', () => {
    const value: FromSchema<typeof ORDER> = check(ORDER, { name: 'ab' });
    const name: string = value.name;
    const count: number | undefined = value.count;
    const note: string | null | undefined = value.note;
    assert.deepEqual([name, count, note], ['ab', undefined, undefined]);
  });

  it('never repeats a field name from outside in its message', () => {
    assert.throws(
      () => check(ORDER, { name: 'ab', '<script>': 1 }),
      (error) => error instanceof SchemaError && !error.message.includes('script'),
    );
  });
});
