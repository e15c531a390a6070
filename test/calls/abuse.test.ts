// What the door for call events refuses is counted under its reason, row by row. The table in test/abuse asks all doors.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { assertRefusal, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  addSites,
  type CallServer,
  callBody,
  countCalls,
  countMetrics,
  nowSec,
  OPEN_SITE,
  OTHER_SECRET,
  OTHER_SITE,
  post,
  SECRET,
  SITE,
  type SignedRequest,
  sign,
  signedRequest,
  startCallServer,
} from './support.ts';

const BODY = JSON.stringify(callBody());
const good = (): SignedRequest => signedRequest(BODY);

/** A good request whose headers are changed after it was signed. */
function withHeaders(change: (headers: Record<string, string>) => Record<string, unknown>): SignedRequest {
  const request = good();
  return {
    ...request,
    headers: { ...request.headers, ...(change(request.headers) as Record<string, string>) },
  };
}
const respelled = (spell: (signature: string) => unknown): SignedRequest =>
  withHeaders((headers) => ({ 'x-ops-signature': spell(headers['x-ops-signature'] ?? '') }));
const at = (timestamp: string): SignedRequest => signedRequest(BODY, { timestamp });
function without(name: string): SignedRequest {
  const request = good();
  delete request.headers[name];
  return request;
}
const twice = (value: string): string[] => [value, value];
const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
/** Of both cases in every signature, so that no row is about the same text. */
const upper = (signature: string): string => signature.toUpperCase();

type Row = [name: string, request: () => SignedRequest, status: number, code: string, reason: string];

const REFUSED_SIGNATURES: Row[] = [
  ['upper-case hex', () => respelled(upper), 401, 'bad_signature', 'malformed_signature'],
  [
    'one upper-case digit',
    () => respelled((s) => s.replace(/[a-f]/, (d) => d.toUpperCase())),
    401,
    'bad_signature',
    'malformed_signature',
  ],
  [
    'a signature padded with zeros',
    () => respelled((s) => `00${s}`),
    401,
    'bad_signature',
    'malformed_signature',
  ],
  [
    'a signature padded with =',
    () => respelled((s) => `${s}==`),
    401,
    'bad_signature',
    'malformed_signature',
  ],
  [
    'a signature with a prefix',
    () => respelled((s) => `sha256=${s}`),
    401,
    'bad_signature',
    'malformed_signature',
  ],
  ['a signature written twice', () => respelled((s) => s + s), 401, 'bad_signature', 'malformed_signature'],
  ['the signature header twice', () => respelled(twice), 401, 'bad_signature', 'malformed_signature'],
  [
    'a truncated signature',
    () => respelled((s) => s.slice(0, 63)),
    401,
    'bad_signature',
    'malformed_signature',
  ],
  ['a signature in base64', () => respelled(base64), 401, 'bad_signature', 'malformed_signature'],
  ['an empty signature', () => respelled(() => ''), 401, 'bad_signature', 'malformed_signature'],
  ['no signature', () => without('x-ops-signature'), 401, 'bad_signature', 'missing_signature'],
  [
    "another site's signature",
    () =>
      withHeaders((h) => ({
        'x-ops-signature': sign(OTHER_SITE, h['x-ops-timestamp'] ?? '', BODY, OTHER_SECRET),
      })),
    401,
    'bad_signature',
    'bad_signature',
  ],
  [
    "another site's secret",
    () => signedRequest(BODY, { secret: OTHER_SECRET }),
    401,
    'bad_signature',
    'bad_signature',
  ],
  [
    'another body under the signature',
    () => ({ ...good(), body: BODY.replace('7', '8') }),
    401,
    'bad_signature',
    'bad_signature',
  ],
  [
    'another timestamp over the signature',
    () => withHeaders(() => ({ 'x-ops-timestamp': String(nowSec() - 7) })),
    401,
    'bad_signature',
    'bad_signature',
  ],
  ['a timestamp too old', () => at(String(nowSec() - 310)), 401, 'bad_signature', 'stale'],
  ['a timestamp in the future', () => at(String(nowSec() + 310)), 401, 'bad_signature', 'stale'],
  ['milliseconds', () => at(String(Date.now())), 401, 'bad_signature', 'malformed_timestamp'],
  ['a fraction of a second', () => at(`${nowSec()}.0`), 401, 'bad_signature', 'malformed_timestamp'],
  ['a timestamp with a sign', () => at(`+${nowSec()}`), 401, 'bad_signature', 'malformed_timestamp'],
  ['a timestamp with a zero in front', () => at(`0${nowSec()}`), 401, 'bad_signature', 'malformed_timestamp'],
  ['no timestamp', () => without('x-ops-timestamp'), 401, 'bad_signature', 'malformed_timestamp'],
  [
    'the timestamp twice',
    () => withHeaders((h) => ({ 'x-ops-timestamp': twice(h['x-ops-timestamp'] ?? '') })),
    401,
    'bad_signature',
    'malformed_timestamp',
  ],
  [
    'a wrong signature where none is required',
    () => signedRequest(BODY, { site: OPEN_SITE }),
    401,
    'bad_signature',
    'no_secret',
  ],
];

const REFUSED_SITES: Row[] = [
  ['an unknown site', () => signedRequest(BODY, { site: 'unknown' }), 401, 'bad_signature', 'unknown_site'],
  [
    'the site twice',
    () => withHeaders(() => ({ 'x-ops-site': twice(SITE) })),
    401,
    'bad_signature',
    'unknown_site',
  ],
  ['no site', () => without('x-ops-site'), 401, 'bad_signature', 'unknown_site'],
  ['a site with a quote', () => signedRequest(BODY, { site: "'" }), 401, 'bad_signature', 'unknown_site'],
];

const body = (text: string | Uint8Array) => (): SignedRequest => signedRequest(text);
const change = (fields: Record<string, unknown>) => body(JSON.stringify(callBody(fields)));

const REFUSED_BODIES: Row[] = [
  ['an empty body', body(''), 400, 'invalid_json', 'invalid_json'],
  ['broken JSON', body('{"kind":"ring"'), 400, 'invalid_json', 'invalid_json'],
  ['bytes that are not UTF-8', body(Uint8Array.of(0x7b, 0xff, 0x7d)), 400, 'invalid_json', 'invalid_json'],
  ['a byte order mark', body(`\ufeff${BODY}`), 400, 'invalid_json', 'invalid_json'],
  ['a key twice', body(BODY.replace('{', '{"kind":"x",')), 400, 'invalid_json', 'invalid_json'],
  ['__proto__', body(BODY.replace('"line"', '"__proto__"')), 400, 'invalid_json', 'invalid_json'],
  [
    '33 levels',
    body(BODY.replace('7', `${'['.repeat(33)}${']'.repeat(33)}`)),
    400,
    'invalid_json',
    'invalid_json',
  ],
  ['an escaped NUL', body(BODY.replace('ring', 'r\\u0000')), 400, 'invalid_json', 'invalid_json'],
  ['a lone surrogate', body(BODY.replace('ring', '\\ud800')), 400, 'invalid_json', 'invalid_json'],
  [
    'an integer beyond 2^53',
    body(BODY.replace('7', '9007199254740993')),
    400,
    'invalid_json',
    'invalid_json',
  ],
  ['1e130000', body(BODY.replace('7', '1e130000')), 400, 'invalid_json', 'invalid_json'],
  ['an array', body(`[${BODY}]`), 422, 'invalid_input', 'invalid_input'],
  ['an unknown field', change({ admin: true }), 422, 'invalid_input', 'invalid_input'],
  ['no kind', change({ kind: undefined }), 422, 'invalid_input', 'invalid_input'],
  ['a number for a kind', change({ kind: 7 }), 422, 'invalid_input', 'invalid_input'],
  ['no payload', change({ payload: undefined }), 422, 'invalid_input', 'invalid_input'],
  ['text for a payload', change({ payload: 'x' }), 422, 'invalid_input', 'invalid_input'],
  ['an empty event id', change({ event_id: '' }), 422, 'invalid_input', 'invalid_input'],
  ['no time', change({ occurred_at: undefined }), 422, 'invalid_input', 'invalid_input'],
  [
    'a time without an offset',
    change({ occurred_at: '2026-02-24T10:00:00' }),
    422,
    'invalid_input',
    'invalid_input',
  ],
  [
    'the 30th of February',
    change({ occurred_at: '2026-02-30T10:00:00Z' }),
    422,
    'invalid_input',
    'invalid_input',
  ],
  [
    'an offset of 20 hours',
    change({ occurred_at: '2026-02-24T10:00:00+20:00' }),
    422,
    'invalid_input',
    'invalid_input',
  ],
];

describe('bad input at the door for call events', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: CallServer;
  const metrics = countMetrics();

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = await openClient(databases.db2.url);
    await addSites(client);
    server = await startCallServer({ db2Url: databases.db2.url, metrics });
  });
  after(async () => {
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  for (const [name, request, status, code, reason] of [
    ...REFUSED_SIGNATURES,
    ...REFUSED_SITES,
    ...REFUSED_BODIES,
  ]) {
    it(`${name}: ${status} ${code}`, async () => {
      metrics.counts.clear();
      const answer = await post(server.url, request());
      assertRefusal(answer, status, code);
      for (const secret of [SECRET, OTHER_SECRET]) assert.ok(!answer.text.includes(secret));
      const counted = [...metrics.counts.keys()].map((key) => key.split(' ').slice(1).join(' '));
      assert.deepEqual(counted, [`refused ${reason}`]);
      assert.equal(await countCalls(client), 0);
    });
  }

  it('what was refused is taken once it is right, so nothing of it was remembered', async () => {
    const answer = await post(server.url, good());
    assert.deepEqual([answer.status, answer.json.status], [200, 'recorded']);
    const odd = await post(server.url, signedRequest(callBody({ kind: `'; drop table public.calls; --` })));
    assert.equal(odd.status, 200);
    assert.equal(await countCalls(client), 2);
  });
});
