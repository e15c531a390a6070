// Rows about bodies: too large, of another type, no JSON, JSON that two readers would read in two ways.

import { gzipSync } from 'node:zlib';
import { type Door, requestTo } from './doors.ts';
import type { Expected } from './judge.ts';
import { fresh, type Place } from './place.ts';
import type { Row } from './row.ts';

const RECORDED = { status: 200, word: 'recorded', changes: ['db2 public.webhook_events'] };
const QUARANTINED = { ...RECORDED, word: 'quarantined' };
const KEPT_AND_REFUSED = { status: 400, word: 'invalid_json', changes: RECORDED.changes };
const INVALID_JSON = { status: 400, word: 'invalid_json' };
const INVALID_INPUT = { status: 422, word: 'invalid_input' };
const UNSUPPORTED = { status: 415, word: 'unsupported_media_type' };
const TOO_LARGE = { status: 413, word: 'too_large' };

const everywhere = (expected: Expected) => ({
  claim: expected,
  admin: expected,
  webhook: expected,
  call: expected,
});
const strictly = (expected: Expected, webhook: Expected | ((door: Door) => Expected)) => ({
  claim: expected,
  admin: expected,
  call: expected,
  webhook,
});

const takesBody = (door: Door): boolean => door.bodyOf !== undefined;
const takesJson = (door: Door): boolean => takesBody(door) && door.isForm !== true;

const textOf = (door: Door, place: Place, id: string): string => door.bodyOf?.(place, id) ?? '';

/** The door's own body with a field more, inside the event where the provider wraps it. */
function withField(door: Door, text: string, field: string): string {
  const start = door.eventStart ?? '{';
  const isEmpty = text === '{}';
  return text.replace(start, `${start}${field}${isEmpty ? '' : ','}`);
}

/** A row of which the body is the door's own with one field more. */
function field(fact: string, name: string, text: string, expect: Row['expect']): Row {
  return {
    fact,
    name,
    expect,
    isFor: takesJson,
    ask: async (door, place) => {
      const id = fresh();
      return [await requestTo(door, place, { id, body: withField(door, textOf(door, place, id), text) })];
    },
  };
}

/** A row of which the body is made from the door's own. */
function body(
  fact: string,
  name: string,
  change: (text: string) => string | Uint8Array,
  expect: Row['expect'],
): Row {
  return {
    fact,
    name,
    expect,
    isFor: takesJson,
    ask: async (door, place) => {
      const id = fresh();
      return [await requestTo(door, place, { id, body: change(textOf(door, place, id)) })];
    },
  };
}

/** Deno gives its server no body of a GET: there is nothing to count. */
const canHaveBody = (door: Door, { runtime }: Place): boolean => runtime === 'node' || door.method !== 'GET';

const size: Row[] = [
  {
    fact: 'body over the limit',
    name: 'a byte more than the door takes',
    expect: everywhere(TOO_LARGE),
    isFor: canHaveBody,
    ask: async (door, place) => [
      await requestTo(door, place, { body: `{"x":"${'x'.repeat(door.maxBytes - 7)}"}` }),
    ],
  },
  {
    fact: 'body over the limit',
    name: 'chunks without a length, more than the door takes',
    expect: everywhere(TOO_LARGE),
    isFor: canHaveBody,
    ask: async (door, place) => [
      await requestTo(door, place, {
        body: 'x'.repeat(door.maxBytes + 1),
        headers: { 'transfer-encoding': 'chunked' },
      }),
    ],
  },
];

const type = (name: string, headers: Record<string, string | undefined>, isFor = takesBody): Row => ({
  fact: 'wrong content type / any Content-Encoding',
  name,
  expect: everywhere(UNSUPPORTED),
  isFor,
  ask: async (door, place) => [await requestTo(door, place, { headers })],
});
/** Slack and Twilio send forms. */
const takesNoForm = (door: Door): boolean => takesBody(door) && !/slack|twilio|github/.test(door.name);

const types: Row[] = [
  {
    fact: 'wrong content type / any Content-Encoding',
    name: 'neither body nor type',
    expect: everywhere(UNSUPPORTED),
    isFor: (door) => takesBody(door) && !door.name.includes('bridge-worker'),
    ask: async (door, place) => {
      const { body: _, ...wire } = await requestTo(door, place, { headers: { 'content-type': undefined } });
      return [wire];
    },
  },
  type('plain text', { 'content-type': 'text/plain' }),
  type('a form', { 'content-type': 'application/x-www-form-urlencoded' }, takesNoForm),
  type('another charset', { 'content-type': 'application/json; charset=latin1' }),
  type('two types in one', { 'content-type': 'application/json, text/plain' }),
  type('Content-Encoding gzip', { 'content-encoding': 'gzip' }),
  type('Content-Encoding identity', { 'content-encoding': 'identity' }),
  {
    fact: 'wrong content type / any Content-Encoding',
    name: 'a packed body',
    expect: everywhere(UNSUPPORTED),
    isFor: takesBody,
    ask: async (door, place) => [
      await requestTo(door, place, {
        body: gzipSync(textOf(door, place, fresh())),
        headers: { 'content-encoding': 'gzip' },
      }),
    ],
  },
];

/** What Slack sends is a form where it does not begin with a brace: these bytes are then one, without an id. */
const isSlack = (door: Door): boolean => door.name.includes('slack');
const keptUnlessSlack = (door: Door): Expected => (isSlack(door) ? QUARANTINED : KEPT_AND_REFUSED);

/** The bridge worker needs none. */
const needsBody = (door: Door): boolean => takesJson(door) && !door.name.includes('bridge-worker');

const INVALID = 'invalid JSON or UTF-8, BOM';
const KEYS = 'duplicate keys, __proto__';
const DEEP = 'depth > 32';
const TEXT = '\\u0000, lone surrogate';
const NUMBERS = 'integers > 2^53, 1e130000';
const FIELDS = 'unknown fields / wrong types / bad uuid';

/** The first field once more, as it is. */
function firstFieldTwice(text: string): string {
  const [name, value] = Object.entries(JSON.parse(text) as Record<string, unknown>)[0] ?? ['twice', 1];
  const field = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return text === '{}' ? `{${field},${field}}` : text.replace('{', `{${field},`);
}

const json: Row[] = [
  body(
    INVALID,
    'JSON without its end',
    (text) => text.slice(0, -1),
    strictly(INVALID_JSON, KEPT_AND_REFUSED),
  ),
  body(INVALID, 'JSON and more', (text) => `${text}]`, strictly(INVALID_JSON, KEPT_AND_REFUSED)),
  body(
    INVALID,
    'a comment in JSON',
    (text) => text.replace('{', '{/**/'),
    strictly(INVALID_JSON, KEPT_AND_REFUSED),
  ),
  body(
    INVALID,
    'bytes that are no UTF-8',
    (text) =>
      Buffer.concat([
        Buffer.from(text.replace('{', '{"x":"')),
        Uint8Array.of(0xff),
        Buffer.from(`"}${fresh()}`),
      ]),
    strictly(INVALID_JSON, KEPT_AND_REFUSED),
  ),
  body(INVALID, 'a byte order mark', (text) => `\ufeff${text}`, strictly(INVALID_JSON, keptUnlessSlack)),
  {
    fact: INVALID,
    name: 'an empty body',
    expect: strictly(INVALID_JSON, keptUnlessSlack),
    isFor: needsBody,
    ask: async (door, place) => [await requestTo(door, place, { body: '' })],
  },
  body(KEYS, 'a key twice', firstFieldTwice, strictly(INVALID_JSON, RECORDED)),
  field(KEYS, '__proto__', '"__proto__":{"is_active":true}', strictly(INVALID_JSON, RECORDED)),
  field(DEEP, '33 levels', `"x":${'['.repeat(33)}${']'.repeat(33)}`, strictly(INVALID_JSON, QUARANTINED)),
  field(
    DEEP,
    '1,500 levels',
    `"x":${'['.repeat(1_500)}${']'.repeat(1_500)}`,
    strictly(INVALID_JSON, QUARANTINED),
  ),
  field(TEXT, 'an escaped NUL', '"x":"a\\u0000b"', strictly(INVALID_JSON, QUARANTINED)),
  field(TEXT, 'a lone surrogate', '"x":"\\ud800"', strictly(INVALID_JSON, QUARANTINED)),
  field(TEXT, 'a lone surrogate in a key', '"\\udc00":1', strictly(INVALID_JSON, QUARANTINED)),
  field(NUMBERS, '2^53 + 1', '"x":9007199254740993', strictly(INVALID_JSON, RECORDED)),
  field(NUMBERS, '1e130000', '"x":1e130000', strictly(INVALID_JSON, QUARANTINED)),
  field(FIELDS, 'an unknown field', '"nobody_knows":1', strictly(INVALID_INPUT, RECORDED)),
  body(FIELDS, 'an array', (text) => `[${text}]`, strictly(INVALID_INPUT, QUARANTINED)),
  body(
    FIELDS,
    'text in place of an object',
    () => JSON.stringify(fresh()),
    strictly(INVALID_INPUT, QUARANTINED),
  ),
];

export const BODY_ROWS: readonly Row[] = [...size, ...types, ...json];
