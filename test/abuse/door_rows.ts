// Rows about everything around the body: method, path, headers, credentials, signatures.

import { type Door, requestTo } from './doors.ts';
import type { Expected } from './judge.ts';
import { nowSec, type Place, type Wire } from './place.ts';
import type { Row } from './row.ts';

/** A path that takes GET also takes HEAD. */
const withHead = (allow: string): string => allow.replace('GET', 'GET, HEAD');
const notAllowed = ({ allow }: Door): Expected => ({
  status: 405,
  word: 'method_not_allowed',
  allow: withHead(allow),
});
const NOT_FOUND = { status: 404, word: 'not_found' };
const NO_TOKEN = { status: 401, word: 'auth_required' };
const BAD_SIGNATURE = { status: 401, word: 'bad_signature' };

const methods: Row[] = [
  ...['PATCH', 'OPTIONS'].map(
    (method): Row => ({
      fact: 'wrong method',
      name: method,
      expect: { claim: notAllowed, admin: notAllowed, webhook: notAllowed, call: notAllowed },
      ask: async (door, place) => [await requestTo(door, place, { method })],
    }),
  ),
  {
    fact: 'wrong method',
    name: 'GET at a provider without a handshake',
    expect: { webhook: { status: 405, word: 'method_not_allowed', allow: 'POST' } },
    isFor: (door) => !door.name.includes('whatsapp'),
    ask: (door, place) => [{ method: 'GET', path: pathOf(door, place), headers: {} }],
  },
  {
    fact: 'wrong method',
    name: "Meta's handshake with another token",
    expect: { webhook: { status: 403, word: 'handshake_refused' } },
    isFor: (door) => door.name.includes('whatsapp'),
    ask: (door, place) => {
      const query = 'hub.mode=subscribe&hub.verify_token=x&hub.challenge=42';
      return [{ method: 'GET', path: `${pathOf(door, place)}?${query}`, headers: {} }];
    },
  },
];

function pathOf(door: Door, place: Place): string {
  return door.paths[place.runtime]?.(place.things) ?? '';
}

type Spelling = (place: Place) => string | string[] | undefined;
const CREDENTIALS: [name: string, authorization: Spelling, isForBuyersToo: boolean][] = [
  // A buyer without a token is anonymous, and may be.
  ['no Authorization', () => undefined, false],
  ['an empty Authorization', () => '', true],
  ['Bearer and nothing', () => 'Bearer ', true],
  ['Bearer undefined', () => 'Bearer undefined', true],
  ['Bearer null', () => 'Bearer null', true],
  ['a token of rubbish', () => 'Bearer a.b.c', true],
  ['alg none', () => 'Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.', true],
  ['the key and a bit more', ({ operatorKey }) => `Bearer ${operatorKey}x`, true],
  ['the key less its end', ({ operatorKey }) => `Bearer ${operatorKey.slice(0, -1)}`, true],
  ['the key as Basic', ({ operatorKey }) => `Basic ${operatorKey}`, true],
  ['the key without a scheme', ({ operatorKey }) => operatorKey, true],
  ['two keys in one', ({ operatorKey }) => `Bearer ${operatorKey} ${operatorKey}`, true],
  ['an expired token', ({ otherTokens }) => `Bearer ${otherTokens[2]}`, true],
  ["a stranger's good token", ({ otherTokens }) => `Bearer ${otherTokens[0]}`, false],
  ['a good token of another role', ({ otherTokens }) => `Bearer ${otherTokens[1]}`, false],
];

const credentials: Row[] = CREDENTIALS.map(
  ([name, authorization, isForBuyersToo]): Row => ({
    fact: 'no or bad credentials',
    name,
    expect: { admin: NO_TOKEN, ...(isForBuyersToo && { claim: NO_TOKEN }) },
    isFor: (door) => !door.isPublic && !door.isSignIn,
    ask: async (door, place) => [
      await requestTo(door, place, { headers: { authorization: authorization(place) } }),
    ],
  }),
);

type Respell = (signature: string, door: Door) => string | string[] | undefined;

/** The signature inside a header such as `t=…,v1=<signature>` or `sha256=<signature>`: what follows the last mark. */
function respelled(header: string, change: (signature: string) => string): string {
  // A mark stands at the start or after a comma: base64 may itself end in `v7=`.
  const marks = header.matchAll(/^(?:v\d+[=,]|sha256=)?|,v\d+=/g);
  const at = Math.max(...[...marks].map((found) => found.index + found[0].length));
  return header.slice(0, at) + change(header.slice(at));
}
const otherEncoding = (text: string, { signature }: Door): string =>
  signature?.encoding === 'hex'
    ? Buffer.from(text, 'hex').toString('base64')
    : Buffer.from(text, 'base64').toString('hex');

const SIGNATURES: [name: string, respell: Respell, encoding?: 'hex' | 'base64'][] = [
  ['no signature', () => undefined],
  ['an empty signature', () => ''],
  ['the signature header twice', (header) => [header, header]],
  ['the signature written twice', (header) => `${header},${header}`],
  ['a signature without its end', (header) => header.slice(0, -2)],
  ['a signature and a bit more', (header) => `${header}00`],
  ['upper-case hex', (header) => respelled(header, (text) => text.toUpperCase()), 'hex'],
  ['base64 without its padding', (header) => header.replace(/=+$/, ''), 'base64'],
  ['base64 with more padding', (header) => `${header}=`, 'base64'],
  ['the other encoding', (header, door) => respelled(header, (text) => otherEncoding(text, door))],
  ['another scheme', (header) => `sha1=${respelled(header, (text) => text)}`],
  [
    'only a scheme that no provider uses',
    (header) => respelled(header, (text) => text).replace(/v1|v0|sha256|^/, 'v9'),
  ],
];

const signatures: Row[] = [
  ...SIGNATURES.map(
    ([name, respell, encoding]): Row => ({
      fact:
        name === 'no signature'
          ? 'no or bad credentials'
          : 'signature header twice, several schemes, upper-case hex, base64 variants',
      name,
      expect: { webhook: BAD_SIGNATURE, call: BAD_SIGNATURE },
      isFor: ({ signature }) => encoding === undefined || signature?.encoding === encoding,
      ask: async (door, place) => {
        const wire = await requestTo(door, place);
        const header = door.signature?.header ?? '';
        return [changeHeader(wire, header, respell(String(wire.headers[header]), door))];
      },
    }),
  ),
  {
    fact: 'no or bad credentials',
    name: 'the signature of another secret',
    expect: { webhook: BAD_SIGNATURE, call: BAD_SIGNATURE },
    // Base64, which some secrets have to be.
    ask: async (door, place) => [
      await requestTo(door, place, { signing: { secret: Buffer.from('another-secret').toString('base64') } }),
    ],
  },
  {
    fact: 'no or bad credentials',
    name: 'another body under the signature',
    expect: { webhook: BAD_SIGNATURE, call: BAD_SIGNATURE },
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [
        { ...wire, body: String(wire.body).replace(/[0-9]/, (digit) => String((Number(digit) + 1) % 10)) },
      ];
    },
  },
];

/** More than any door lets a clock be wrong. */
const STALE_SEC = 310;
const MS_PER_SEC = 1_000;
const hasTime = ({ signature }: Door): boolean => signature?.timestamp !== undefined;
const TIMES: [name: string, atSec: () => number][] = [
  ['a time too old', () => nowSec() - STALE_SEC],
  ['a time in the future', () => nowSec() + STALE_SEC],
  ['milliseconds', () => Date.now()],
  ['a time of long ago, in thousands of seconds', () => Math.floor(nowSec() / MS_PER_SEC)],
  ['half a second', () => nowSec() + 0.5],
];
const TIME = 'timestamp too old or in the future, seconds and milliseconds mixed up, missing or twice';

const times: Row[] = [
  ...TIMES.map(
    ([name, atSec]): Row => ({
      fact: TIME,
      name,
      expect: { webhook: BAD_SIGNATURE, call: BAD_SIGNATURE },
      isFor: hasTime,
      ask: async (door, place) => [await requestTo(door, place, { signing: { atSec: atSec() } })],
    }),
  ),
  ...(['no time', 'the time twice'] as const).map(
    (name): Row => ({
      fact: TIME,
      name,
      expect: { webhook: BAD_SIGNATURE, call: BAD_SIGNATURE },
      isFor: hasTime,
      ask: async (door, place) => {
        const wire = await requestTo(door, place);
        const { timestamp = '', header } = door.signature ?? { header: '' };
        const value = String(wire.headers[timestamp]);
        // Stripe's stands inside the signature's own header.
        const isInside = timestamp === header;
        const part = /t=\d+,/.exec(value)?.[0] ?? '';
        const changed =
          name === 'no time'
            ? isInside
              ? value.replace(part, '')
              : undefined
            : isInside
              ? part + value
              : [value, value];
        return [changeHeader(wire, timestamp, changed)];
      },
    }),
  ),
];

function changeHeader(wire: Wire, name: string, value: string | string[] | undefined): Wire {
  const { [name]: _, ...rest } = wire.headers;
  return { ...wire, headers: value === undefined ? rest : { ...rest, [name]: value } };
}

const LARGE_HEADER_BYTES = 20_000;
/** The gateway in front of the functions refuses them itself, without a body. */
const headersTooLarge = (_: Door, { runtime }: Place): Expected =>
  runtime === 'deno' ? { status: 431, isAnsweredInFront: true } : { status: 431, word: 'headers_too_large' };
const LARGE_HEADERS: [name: string, value: string | string[]][] = [
  ['headers of 20 KB', 'x'.repeat(LARGE_HEADER_BYTES)],
  ['two thousand headers', Array.from({ length: 2_000 }, () => 'xxxxxxxxxx')],
];

const headers: Row[] = [
  ...LARGE_HEADERS.map(
    ([name, value]): Row => ({
      fact: 'headers > 16 KB',
      name,
      expect: {
        claim: headersTooLarge,
        admin: headersTooLarge,
        webhook: headersTooLarge,
        call: headersTooLarge,
      },
      ask: async (door, place) => [changeHeader(await requestTo(door, place), 'x-large', value)],
    }),
  ),
];

const lastLetterEscaped = (path: string): string =>
  `${path.slice(0, -1)}%${path.charCodeAt(path.length - 1).toString(16)}`;
const beforeLast = (path: string, segment: string): string => path.replace(/\/([^/]*)$/, `/${segment}/$1`);
const PATHS: [name: string, trick: (path: string) => string][] = [
  ['two slashes in front', (path) => `/${path}`],
  ['two slashes inside', (path) => path.replace(/\/([^/]*)$/, '//$1')],
  ['a slash at the end', (path) => `${path}/`],
  ['a deeper path', (path) => `${path}/x/y`],
  ['dots', (path) => beforeLast(path, 'x/..')],
  ['an escaped dot', (path) => beforeLast(path, '%2e')],
  ['two escaped dots', (path) => beforeLast(path, 'x/%2e%2e')],
  [
    'an escaped slash',
    (path) => path.replace(/(?<=.)\/(?=[^/]*$)|^\/(?=[^/]*$)/, (_, at) => (at === 0 ? '/%2f' : '%2f')),
  ],
  ['an escaped letter', lastLetterEscaped],
  ['an escaped NUL', (path) => `${path}%00`],
  ['another case', (path) => path.toUpperCase()],
  ['a semicolon', (path) => `${path};x=1`],
];

/** An escaped slash belongs to a name, so what is before it and after it is one pool or claim: a path that takes GET. */
const isNamedWithSlash = (name: string, { name: door }: Door): boolean =>
  name === 'an escaped slash' && /:pool\/claims$|:claim\/release$/.test(door);

const paths: Row[] = PATHS.map(([name, trick]): Row => {
  const expected = (door: Door, { runtime }: Place): Expected => {
    if (name === 'an escaped slash' && door.name.endsWith('/challenge'))
      return { status: 404, word: 'unknown_pool' };
    // One claim with a slash in its name, whose path takes other methods; the function has no such path.
    if (name === 'an escaped slash' && door.name.endsWith('/checkout') && runtime === 'node')
      return { status: 405, word: 'method_not_allowed', allow: withHead('GET, DELETE') };
    return isNamedWithSlash(name, door)
      ? { status: 405, word: 'method_not_allowed', allow: withHead('GET') }
      : NOT_FOUND;
  };
  return {
    fact: 'path tricks',
    name,
    expect: { claim: expected, admin: expected, webhook: NOT_FOUND, call: NOT_FOUND },
    ask: async (door, place) => [await requestTo(door, place, { path: trick(pathOf(door, place)) })],
  };
});

export const DOOR_ROWS: readonly Row[] = [
  ...methods,
  ...credentials,
  ...signatures,
  ...times,
  ...headers,
  ...paths,
];
