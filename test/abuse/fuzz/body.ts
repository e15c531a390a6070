// Bodies that were good: JSON with something wrong inside, and bytes with something wrong between them.

import type { Random } from '../../support/load.ts';

/** Useless values. Numbers are small where a large one means much work: to make a million slots takes 15 seconds. */
const VALUES = [
  'null',
  'true',
  '""',
  '" "',
  '"x"',
  '0',
  '-0',
  '-1',
  '1',
  '2',
  '1.5',
  '1e2',
  '2147483648',
  '4294967296',
  '9007199254740991',
  '9007199254740993',
  '1e400',
  '-1e130000',
  '0.1e-400',
  '[]',
  '{}',
  '[[[]]]',
  '[null]',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\u{1f600}"',
  '"\u202e\ufeff"',
  '"\'; drop table public.claims; --"',
  '"%00%0d%0a"',
  '"../../etc/passwd"',
  '"$1"',
  '"{1,2}"',
  '"-Infinity"',
  '"2026-02-30T25:61:61Z"',
  '"00000000-0000-0000-0000-000000000000"',
  'NaN',
  'undefined',
  '01',
  '+1',
  "'x'",
];
const KEYS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  'id',
  'user_id',
  'request_id',
  'key',
  '\\u0069d',
];

/** Bytes that no UTF-8 text has: too long, cut short, surrogates, beyond the last character. */
const BROKEN = [
  [0xff],
  [0xc0, 0x80],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0x00],
  [0xef, 0xbb, 0xbf],
];

const DEPTHS = [31, 32, 33, 100, 1_000, 1_900];

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random.below(items.length)] as Item;
}

type Mutation = (body: Buffer, random: Random) => Buffer;

const text =
  (change: (text: string, random: Random) => string): Mutation =>
  (body, random) =>
    Buffer.from(change(body.toString('latin1'), random), 'latin1');

const MUTATIONS: readonly Mutation[] = [
  // A value in place of another one.
  text((json, random) => {
    const places = [...json.matchAll(/:("[^"]*"|[\d.]+|true|false|null|\[[^\]]*\])/g)];
    if (places.length === 0) return pick(random, VALUES);
    const { index, 1: old = '' } = pick(random, places);
    return json.slice(0, index + 1) + latin(pick(random, VALUES)) + json.slice(index + 1 + old.length);
  }),
  // A field more, perhaps one that is there already.
  text((json, random) => json.replace('{', `{"${pick(random, KEYS)}":${latin(pick(random, VALUES))},`)),
  // A field twice.
  text((json) => json.replace(/\{("[^"]*":[^,{}[\]]*)/, '{$1,$1')),
  text((json, random) => {
    const depth = pick(random, DEPTHS);
    const [open, close] = random.below(2) === 0 ? ['[', ']'] : ['{"a":', '}'];
    return json.replace('{', `{"deep":${open.repeat(depth)}1${close.repeat(depth)},`);
  }),
  text((json, random) => json.replace('{', `{"${'k'.repeat(random.below(6_000))}":1,`)),
  text((json) => `[${json}]`),
  text(() => ''),
  text((json) => json + json),
  text((json, random) => pick(random, VALUES) + json),
  text((json) => json.replaceAll(',', ' , \t\r\n')),
  // Bytes.
  (body, random) => {
    const copy = Buffer.from(body);
    if (copy.length > 0) copy[random.below(copy.length)] = random.below(256);
    return copy;
  },
  (body, random) => {
    const at = random.below(body.length + 1);
    return Buffer.concat([body.subarray(0, at), Buffer.from(pick(random, BROKEN)), body.subarray(at)]);
  },
  (body, random) => body.subarray(0, random.below(body.length + 1)),
  (_, random) => Buffer.from(Array.from({ length: random.below(300) }, () => random.below(256))),
  (body, random) => Buffer.concat([body, Buffer.alloc(random.below(80_000), 0x20)]),
];

function latin(value: string): string {
  return Buffer.from(value).toString('latin1');
}

export function mutateBody(body: Buffer, random: Random): Buffer {
  let mutated = body;
  for (let times = 1 + random.below(2); times > 0; times--)
    mutated = pick(random, MUTATIONS)(mutated, random);
  return mutated;
}
