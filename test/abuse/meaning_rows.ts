// Rows about requests that are well formed, and wrong by what they say: known before, about nothing, about the wrong thing.

import { type Door, requestTo } from './doors.ts';
import type { Expected } from './judge.ts';
import { fresh, type Place } from './place.ts';
import type { Row } from './row.ts';

const INVALID_INPUT = { status: 422, word: 'invalid_input' };
const isClaiming = (door: Door): boolean => door.name === 'POST /v1/pools/:pool/claims';
const isNamed =
  (part: string) =>
  (door: Door): boolean =>
    door.name.includes(part);

/** A row for one door, of which the body is given whole. */
function json(
  fact: string,
  name: string,
  door: string,
  body: unknown,
  expected: Expected,
  path?: string,
): Row {
  return {
    fact,
    name,
    expect: { claim: expected, admin: expected, call: expected },
    isFor: (each) => each.name === door,
    ask: async (each, place) => [
      await requestTo(each, place, {
        body: JSON.stringify(body),
        ...(path !== undefined && { path }),
      }),
    ],
  };
}

/** Standard Webhooks' id is a header, and follows from the body here; Twilio's is what happened to which call. */
const hasIdOfItsOwn = (door: Door): boolean => !/standard|twilio/.test(door.name);

const again: Row[] = [
  {
    fact: 'duplicate delivery',
    name: 'the same once more',
    expect: {
      claim: { status: 200 },
      webhook: { status: 200, word: 'duplicate' },
      call: { status: 200, word: 'noop' },
    },
    isFor: (door) => door.group !== 'claim' || isClaiming(door),
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [wire, wire];
    },
  },
  {
    fact: 'same id, other body',
    name: 'the same id with another body',
    expect: {
      webhook: { status: 200, word: 'body_differs', changes: ['db2 public.webhook_alarms'] },
      call: { status: 409, word: 'event_conflict' },
    },
    // A request id is its user's own: with another user it is another request.
    isFor: (door) => door.group !== 'claim' && hasIdOfItsOwn(door),
    ask: async (door, place) => {
      const id = fresh();
      const text = door.bodyOf?.(place, id) ?? '';
      const other = text
        .replace('ann', 'eve')
        .replace('"line":7', '"line":8')
        .replace('"type":"table.test"', '"type":"table.other"');
      return [await requestTo(door, place, { id }), await requestTo(door, place, { id, body: other })];
    },
  },
];

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const CLAIM = 'POST /v1/pools/:pool/claims';
const USER = { user_id: 'ann' };
const POOLS = 'unknown pool / closed pool / sold out';
const FIELDS = 'unknown fields / wrong types / bad uuid';

const claims: Row[] = [
  json(
    POOLS,
    'an unknown pool',
    CLAIM,
    USER,
    { status: 404, word: 'unknown_pool' },
    '/v1/pools/unknown/claims',
  ),
  json(POOLS, 'a closed pool', CLAIM, USER, { status: 409, word: 'closed' }, '/v1/pools/abuse-shut/claims'),
  json(
    POOLS,
    'a sold-out pool',
    CLAIM,
    USER,
    { status: 409, word: 'sold_out' },
    '/v1/pools/abuse-empty/claims',
  ),
  json(
    'no or bad credentials',
    'no token in a pool for members',
    CLAIM,
    USER,
    { status: 401, word: 'auth_required' },
    '/v1/pools/abuse-members/claims',
  ),
  json(FIELDS, 'a number for a user', CLAIM, { user_id: 7 }, INVALID_INPUT),
  json(FIELDS, 'null for a user', CLAIM, { user_id: null }, INVALID_INPUT),
  json(FIELDS, 'an empty user', CLAIM, { user_id: '' }, INVALID_INPUT),
  json(FIELDS, 'a user of 201 characters', CLAIM, { user_id: 'x'.repeat(201) }, INVALID_INPUT),
  json(FIELDS, 'no user', CLAIM, {}, INVALID_INPUT),
  json(FIELDS, 'an empty request id', CLAIM, { ...USER, request_id: '' }, INVALID_INPUT),
  json(FIELDS, 'null for a request id', CLAIM, { ...USER, request_id: null }, INVALID_INPUT),
  {
    fact: FIELDS,
    name: 'two request ids',
    expect: { claim: INVALID_INPUT },
    isFor: isClaiming,
    ask: async (door, place) => [await requestTo(door, place, { headers: { 'idempotency-key': 'other' } })],
  },
  {
    fact: FIELDS,
    name: 'a claim id that is not a uuid',
    expect: { claim: INVALID_INPUT, admin: INVALID_INPUT },
    isFor: isNamed('claims/:claim'),
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [{ ...wire, path: wire.path.replace(UUID, 'abc') }];
    },
  },
  {
    fact: FIELDS,
    name: "a token for another user's claim",
    expect: { claim: { status: 403, word: 'not_yours' } },
    isFor: isClaiming,
    ask: async (door, place) => [
      await requestTo(door, place, { headers: { authorization: `Bearer ${place.otherTokens[0]}` } }),
    ],
  },
];

const CHECK = 'POST /v1/tickets/check';
const CHECKOUT = 'POST /v1/claims/:claim/checkout';
const HIDDEN = { status: 404, word: 'unknown_claim' };
const checkout = (name: string, headers: Record<string, string | undefined>, expected: Expected): Row => ({
  fact: 'no or bad credentials',
  name,
  expect: { claim: expected },
  isFor: (door) => door.name === CHECKOUT,
  ask: async (door, place) => [await requestTo(door, place, { headers })],
});

const paid: Row[] = [
  checkout(
    'the checkout of a claim with another secret',
    { 'x-claim-secret': 'not-the-secret-of-it' },
    HIDDEN,
  ),
  checkout('the checkout of a claim without its secret', { 'x-claim-secret': undefined }, HIDDEN),
  {
    fact: FIELDS,
    name: 'the checkout of a claim that does not exist',
    expect: { claim: HIDDEN },
    isFor: (door) => door.name === CHECKOUT,
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [{ ...wire, path: wire.path.replace(UUID, '01900000-0000-7000-8000-0000000000ff') }];
    },
  },
  {
    fact: FIELDS,
    name: 'the checkout of a claim that nothing is paid for',
    expect: { claim: { status: 409, word: 'not_for_payment' } },
    isFor: (door) => door.name === CHECKOUT,
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [{ ...wire, path: wire.path.replace(UUID, place.things.claimId) }];
    },
  },
  json(FIELDS, 'a number for a token', CHECK, { token: 7 }, INVALID_INPUT),
  json(FIELDS, 'an empty token', CHECK, { token: '' }, INVALID_INPUT),
  json(FIELDS, 'a token of 501 characters', CHECK, { token: 'x'.repeat(501) }, INVALID_INPUT),
  // A scanner is told so in words of its own, and no ticket is used.
  json(FIELDS, 'a token that is forged', CHECK, { token: 'A'.repeat(43) }, { status: 200 }),
  json(FIELDS, 'a token with SQL in it', CHECK, { token: `'; delete from ticket_uses; --` }, { status: 200 }),
];

/** Text that looks like SQL is text: the request is as good as any. */
const CLAIMED = {
  status: 201,
  changes: ['db1 pgmq.q_intake_queue', 'db1 public.claims', 'db1 public.inventory_slots'],
};
const SQL = { user_id: `'; drop table claims; --`, request_id: '{"a","b"}' };
claims.push(json(FIELDS, 'text that looks like SQL', CLAIM, SQL, CLAIMED));

const QUERIES: [name: string, query: string][] = [
  ['an unknown filter', 'nobody_knows=p'],
  ['a filter named __proto__', '__proto__=p'],
  ['a filter twice', 'limit=1&limit=2'],
  ['a NUL in a filter', 'pool_id=%00'],
  ['a limit of 0', 'limit=0'],
  ['a limit that is not a number', 'limit=1e3'],
  ['a limit beyond all', 'limit=99999999999999999999'],
];
const LETTER_IDS: [name: string, id: string, expected: Expected][] = [
  ['an id that is not a number', 'abc', INVALID_INPUT],
  ['an id beyond 2^53', '9007199254740993', INVALID_INPUT],
  ['an unknown id', '999999991', { status: 404, word: 'not_found' }],
];
const LISTS = ['GET /admin/dlq', 'GET /admin/claims', 'GET /admin/calls', 'GET /admin/audit'];

const operators: Row[] = [
  ...LETTER_IDS.map(
    ([name, id, expected]): Row => ({
      fact: FIELDS,
      name,
      expect: { admin: expected },
      isFor: isNamed('dlq/:msg_id'),
      ask: async (door, place) => {
        const wire = await requestTo(door, place);
        return [{ ...wire, path: wire.path.replace(/\d+$/, id) }];
      },
    }),
  ),
  ...QUERIES.map(
    ([name, query]): Row => ({
      fact: FIELDS,
      name,
      expect: { admin: INVALID_INPUT },
      isFor: (door) => LISTS.includes(door.name),
      ask: async (door, place) => {
        const wire = await requestTo(door, place);
        return [{ ...wire, path: `${wire.path}?${query}` }];
      },
    }),
  ),
  ...(
    [
      ['ids as text', ['1']],
      ['an id of 0', [0]],
      ['half an id', [1.5]],
      ['no ids', []],
      ['1,001 ids', Array.from({ length: 1_001 }, (_, index) => index + 1)],
    ] as [string, unknown[]][]
  ).map(
    ([name, ids]): Row => ({
      fact: FIELDS,
      name,
      expect: { admin: INVALID_INPUT },
      isFor: (door) => /dlq\/(replay|discard)|events\/(replay|skip)/.test(door.name),
      ask: async (door, place) => [
        await requestTo(door, place, {
          body: JSON.stringify({ [door.name.includes('dlq') ? 'msg_ids' : 'ids']: ids }),
        }),
      ],
    }),
  ),
  {
    fact: 'no or bad credentials',
    name: 'a wrong key to sign in with',
    expect: { admin: { status: 401, word: 'auth_required' } },
    isFor: (door) => door.isSignIn === true,
    ask: async (door, place) => [await requestTo(door, place)],
  },
  {
    fact: 'unknown message ids',
    name: 'unknown ids',
    expect: { admin: { status: 200 } },
    isFor: (door) => /dlq\/(replay|discard)|events\/(replay|skip)/.test(door.name),
    ask: async (door, place) => [
      await requestTo(door, place, {
        body: JSON.stringify(
          door.name.includes('dlq')
            ? { msg_ids: [999_999_991, 999_999_992] }
            : { ids: ['01900000-0000-7000-8000-0000000000ff'] },
        ),
      }),
    ],
  },
];

const kinds: Row[] = [
  {
    fact: 'unknown event type',
    name: 'a kind that the site may not send',
    expect: { call: INVALID_INPUT },
    ask: async (door, place) => {
      const body = door.bodyOf?.(place, fresh()).replace('"ring"', '"nobody_knows"') ?? '';
      return [await requestTo(door, place, { body })];
    },
  },
  {
    fact: 'unknown event type',
    name: 'a type without a handler, inline',
    expect: {
      webhook: { status: 200, word: 'skipped', changes: ['db2 public.webhook_events'] },
    },
    isFor: isNamed('stripe'),
    ask: async (door, place) => {
      const wire = await requestTo(door, place);
      return [{ ...wire, path: wire.path.replace('abuse-stripe', 'abuse-inline') }];
    },
  },
];

/** Stored nowhere; that they are not called either is proven where they would be (test/bridge). */
const ADDRESSES = [
  'http://127.0.0.1/',
  'http://localhost/',
  'http://[::1]/',
  'http://10.0.0.1/',
  'http://169.254.169.254/latest/meta-data',
  'http://0x7f000001/',
  'http://2130706433/',
  'http://[::ffff:127.0.0.1]/',
  'file:///etc/passwd',
  'http://user:password@example.com/',
];
const addresses: Row[] = ADDRESSES.flatMap((url) =>
  ['POST /admin/pools', 'POST /admin/pools/:pool'].map(
    (name): Row => ({
      fact: 'webhook URLs in engine_config',
      name: url,
      expect: { admin: INVALID_INPUT },
      isFor: (door) => door.name === name,
      ask: async (door, place: Place) => {
        const own = JSON.parse(door.bodyOf?.(place, fresh()) ?? '{}') as Record<string, unknown>;
        return [
          await requestTo(door, place, { body: JSON.stringify({ ...own, validation_webhook_url: url }) }),
        ];
      },
    }),
  ),
);

export const MEANING_ROWS: readonly Row[] = [
  ...again,
  ...claims,
  ...paid,
  ...operators,
  ...kinds,
  ...addresses,
];
