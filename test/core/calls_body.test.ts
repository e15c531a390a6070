import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readCallBody } from '#core/calls/body.ts';
import { HttpError } from '#core/errors.ts';

const VALID = { kind: 'ring', occurred_at: '2026-02-24T10:00:00Z', payload: { line: 7 } };
const read = (value: unknown) =>
  readCallBody(new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)));

function refusalOf(value: unknown): string {
  try {
    read(value);
  } catch (error) {
    assert.ok(error instanceof HttpError);
    return `${error.kind.code}: ${error.hint}`;
  }
  return 'taken';
}

describe('the body of a call event', () => {
  it('is read into its parts, the payload as JSON text', () => {
    assert.deepEqual(read({ ...VALID, event_id: 'e1' }), {
      eventId: 'e1',
      kind: 'ring',
      occurredAt: '2026-02-24T10:00:00Z',
      payload: '{"line":7}',
    });
    assert.equal(read(VALID).eventId, null);
    assert.equal(read({ ...VALID, payload: {} }).payload, '{}');
  });

  for (const [what, value, expected] of [
    ['a list', [], 'invalid_input: the body must be of type object.'],
    ['null', null, 'invalid_input: the body must be of type object.'],
    ['a text', '"x"', 'invalid_input: the body must be of type object.'],
    [
      'an unknown field',
      { ...VALID, more: 1 },
      'invalid_input: the body has an unknown field; known are event_id, kind, occurred_at, payload.',
    ],
    [
      'a field that every object inherits',
      { ...VALID, toString: 1 },
      'invalid_input: the body has an unknown field; known are event_id, kind, occurred_at, payload.',
    ],
    ['no payload', { ...VALID, payload: undefined }, 'invalid_input: payload is missing.'],
    ['a payload that is null', { ...VALID, payload: null }, 'invalid_input: payload must be of type object.'],
    ['a payload that is a list', { ...VALID, payload: [] }, 'invalid_input: payload must be of type object.'],
    [
      'a payload that is a text',
      { ...VALID, payload: 'x' },
      'invalid_input: payload must be of type object.',
    ],
    [
      'a day that is not in the calendar',
      { ...VALID, occurred_at: '2026-02-29T10:00:00Z' },
      'invalid_input: occurred_at names a day that does not exist.',
    ],
  ] as const)
    it(`is refused where it is or has ${what}`, () => assert.equal(refusalOf(value), expected));

  it('is refused where it is not strict JSON, with the place', () => {
    assert.match(refusalOf('{'), /^invalid_json: The body was refused: .+\.$/);
    assert.match(
      refusalOf('{"kind":"a","kind":"b"}'),
      /^invalid_json: The body was refused: .*duplicate_key.*\.$/,
    );
  });

  it('needs its kind and its time, of a length that can be stored', () => {
    for (const change of [
      { kind: undefined },
      { kind: '' },
      { kind: 'x'.repeat(101) },
      { kind: 7 },
      { occurred_at: undefined },
      { event_id: '' },
      { event_id: 'x'.repeat(201) },
    ])
      assert.match(refusalOf({ ...VALID, ...change }), /^invalid_input: /, JSON.stringify(change));
    for (const change of [
      { kind: 'x' },
      { kind: 'x'.repeat(100) },
      { event_id: 'x' },
      { event_id: 'x'.repeat(200) },
    ])
      assert.equal(refusalOf({ ...VALID, ...change }), 'taken', JSON.stringify(change));
  });
});

describe('the moment of a call event', () => {
  const verdictOn = (occurred_at: string) => refusalOf({ ...VALID, occurred_at });

  for (const moment of [
    '2026-02-24T10:00:00Z',
    '1900-01-01T00:00:00Z',
    '2999-12-31T23:59:59Z',
    '2024-02-29T10:00:00Z',
    '2026-10-31T19:09:59.1Z',
    '2026-02-24T10:00:00.123456Z',
    '2026-02-24T10:00:00+14:59',
    '2026-02-24T20:00:00-09:30',
  ])
    it(`may be ${moment}`, () => assert.equal(verdictOn(moment), 'taken'));

  for (const moment of [
    'x2026-02-24T10:00:00Z',
    '2026-02-24T10:00:00Zx',
    '1899-02-24T10:00:00Z',
    '3000-02-24T10:00:00Z',
    '2026-00-24T10:00:00Z',
    '2026-13-24T10:00:00Z',
    '2026-02-00T10:00:00Z',
    '2026-01-32T10:00:00Z',
    '2026-04-31T10:00:00Z',
    '2026-02-24T24:00:00Z',
    '2026-02-24T10:60:00Z',
    '2026-02-24T10:00:60Z',
    '2026-02-24T10:00:00.Z',
    '2026-02-24T10:00:00.1234567Z',
    '2026-02-24T10:00:00',
    '2026-02-24T10:00:00+15:00',
    '2026-02-24T10:00:00+09:60',
    '2026-02-24 10:00:00Z',
  ])
    it(`may not be ${moment}`, () => assert.match(verdictOn(moment), /^invalid_input: occurred_at/));
});
