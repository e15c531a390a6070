// Bad input, row by row: the status, the shape of the refusal, nothing changed in the database, and the server lives on.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type pg from 'pg';
import type { RunningServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  type Ask,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  snapshot,
  startTestServer,
  token,
} from './support.ts';

const CLAIMS = '/v1/pools/p/claims';
const GOOD = { user_id: 'ann', request_id: 'r1' };
const DEEP = `{"user_id":${'['.repeat(33)}${']'.repeat(33)}}`;

type Row = [name: string, path: string, ask: Ask, status: number, code: string];

const post = (body: unknown, headers: Record<string, string> = {}): Ask => ({
  method: 'POST',
  body,
  headers,
});

const ROWS: Row[] = [
  ['GET where only POST is', CLAIMS, { method: 'GET' }, 405, 'method_not_allowed'],
  ['PUT where only POST is', CLAIMS, { method: 'PUT', body: GOOD }, 405, 'method_not_allowed'],
  ['OPTIONS', CLAIMS, { method: 'OPTIONS' }, 405, 'method_not_allowed'],
  ['POST to a pool', '/v1/pools/p', post(GOOD), 405, 'method_not_allowed'],

  ['Bearer undefined', CLAIMS, post(GOOD, bearer('undefined')), 401, 'auth_required'],
  ['Bearer null', CLAIMS, post(GOOD, bearer('null')), 401, 'auth_required'],
  ['an empty Authorization', CLAIMS, post(GOOD, { authorization: '' }), 401, 'auth_required'],
  ['an empty Bearer', CLAIMS, post(GOOD, { authorization: 'Bearer ' }), 401, 'auth_required'],
  ['Basic credentials', CLAIMS, post(GOOD, { authorization: 'Basic YWRtaW46eA==' }), 401, 'auth_required'],
  ['a token of rubbish', CLAIMS, post(GOOD, bearer('a.b.c')), 401, 'auth_required'],
  [
    'a token with alg none',
    CLAIMS,
    post(GOOD, bearer('eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.')),
    401,
    'auth_required',
  ],

  ['a body of 4097 bytes', CLAIMS, post(`{"user_id":"ann"${' '.repeat(4096 - 16)}}`), 413, 'too_large'],
  ['a body of a megabyte', CLAIMS, post('x'.repeat(1_000_000)), 413, 'too_large'],
  [
    'a chunked body of 100 KB',
    CLAIMS,
    post('x'.repeat(100_000), { 'transfer-encoding': 'chunked' }),
    413,
    'too_large',
  ],

  [
    'a form',
    CLAIMS,
    post('user_id=ann', { 'content-type': 'application/x-www-form-urlencoded' }),
    415,
    'unsupported_media_type',
  ],
  [
    'another charset',
    CLAIMS,
    post(GOOD, { 'content-type': 'application/json; charset=latin1' }),
    415,
    'unsupported_media_type',
  ],
  [
    'a packed body',
    CLAIMS,
    post(gzipSync(JSON.stringify(GOOD)), { 'content-encoding': 'gzip' }),
    415,
    'unsupported_media_type',
  ],
  [
    'Content-Encoding identity',
    CLAIMS,
    post(GOOD, { 'content-encoding': 'identity' }),
    415,
    'unsupported_media_type',
  ],
  ['no body and no type', CLAIMS, { method: 'POST' }, 415, 'unsupported_media_type'],

  ['an empty body', CLAIMS, post(''), 400, 'invalid_json'],
  ['broken JSON', CLAIMS, post('{"user_id":"ann"'), 400, 'invalid_json'],
  ['bytes that are not UTF-8', CLAIMS, post(Uint8Array.of(0x7b, 0xff, 0x7d)), 400, 'invalid_json'],
  ['a byte order mark', CLAIMS, post('\ufeff{"user_id":"ann"}'), 400, 'invalid_json'],
  ['a key twice', CLAIMS, post('{"user_id":"ann","user_id":"bob"}'), 400, 'invalid_json'],
  ['__proto__', CLAIMS, post('{"user_id":"ann","__proto__":{"request_id":"x"}}'), 400, 'invalid_json'],
  ['33 levels', CLAIMS, post(DEEP), 400, 'invalid_json'],
  ['an escaped NUL', CLAIMS, post('{"user_id":"a\\u0000b"}'), 400, 'invalid_json'],
  ['a lone surrogate', CLAIMS, post('{"user_id":"\\ud800"}'), 400, 'invalid_json'],
  ['an integer beyond 2^53', CLAIMS, post('{"user_id":9007199254740993}'), 400, 'invalid_json'],
  ['1e130000', CLAIMS, post('{"user_id":1e130000}'), 400, 'invalid_json'],

  ['an unknown field', CLAIMS, post({ ...GOOD, admin: true }), 422, 'invalid_input'],
  ['an array', CLAIMS, post([GOOD]), 422, 'invalid_input'],
  ['null', CLAIMS, post('null'), 422, 'invalid_input'],
  ['a number for a user', CLAIMS, post({ user_id: 7 }), 422, 'invalid_input'],
  ['an object for a user', CLAIMS, post({ user_id: {} }), 422, 'invalid_input'],
  ['null for a user', CLAIMS, post({ user_id: null }), 422, 'invalid_input'],
  ['an empty user', CLAIMS, post({ user_id: '' }), 422, 'invalid_input'],
  ['a user of 201 characters', CLAIMS, post({ user_id: 'x'.repeat(201) }), 422, 'invalid_input'],
  ['no user', CLAIMS, post({}), 422, 'invalid_input'],
  ['an empty request id', CLAIMS, post({ user_id: 'ann', request_id: '' }), 422, 'invalid_input'],
  ['null for a request id', CLAIMS, post({ user_id: 'ann', request_id: null }), 422, 'invalid_input'],
  ['two different request ids', CLAIMS, post(GOOD, { 'idempotency-key': 'other' }), 422, 'invalid_input'],
  ['a claim id that is no uuid', '/v1/claims/1', {}, 422, 'invalid_input'],
  ['a claim id with a quote', "/v1/claims/'", {}, 404, 'not_found'],

  ['an unknown pool', '/v1/pools/nope/claims', post(GOOD), 404, 'unknown_pool'],
  ['a closed pool', '/v1/pools/shut/claims', post(GOOD), 409, 'closed'],
  ['a sold-out pool', '/v1/pools/empty/claims', post(GOOD), 409, 'sold_out'],
  ['a pool for members', '/v1/pools/members/claims', post(GOOD), 401, 'auth_required'],
  [
    "another user's request id",
    CLAIMS,
    post({ user_id: 'eve', request_id: 'taken' }),
    409,
    'request_conflict',
  ],

  ['headers of 20 KB', CLAIMS, post(GOOD, { 'x-large': 'x'.repeat(20_000) }), 431, 'headers_too_large'],
  ['a double slash', `/${CLAIMS}`, post(GOOD), 404, 'not_found'],
  ['a slash at the end', `${CLAIMS}/`, post(GOOD), 404, 'not_found'],
  ['an encoded dot', '/v1/pools/%2e/claims', post(GOOD), 404, 'not_found'],
  ['an encoded slash', '/v1/pools/p%2Fclaims', post(GOOD), 404, 'not_found'],
  ['an encoded letter', '/v1/pools/%70/claims', post(GOOD), 404, 'not_found'],
  ['a deeper path', `${CLAIMS}/x/y`, post(GOOD), 404, 'not_found'],
  ['another case', '/V1/pools/p/claims', post(GOOD), 404, 'not_found'],
];

describe('bad input at the claim door', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: RunningServer;

  before(async () => {
    databases = await startDatabases();
    client = await openClient(databases.db1.url);
    await putOnSale(client, 'p', 10);
    await putOnSale(client, 'shut', 1, { is_active: false });
    await putOnSale(client, 'empty', 0);
    await putOnSale(client, 'members', 1, { require_auth: true });
    server = await startTestServer(databases);
    assert.equal((await claim(server.url, 'p', { user_id: 'ann', request_id: 'taken' })).status, 201);
  });
  after(async () => {
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  for (const [name, path, request, status, code] of ROWS) {
    it(`${name}: ${status} ${code}`, async () => {
      const earlier = await snapshot(client);
      const answer = await ask(`${server.url}${path}`, request);
      assertRefusal(answer, status, code);
      if (status === 405) assert.ok(answer.headers.allow);
      if (status === 413) assert.equal(answer.headers.connection, 'close');
      assert.deepEqual(await snapshot(client), earlier);
      assert.equal((await ask(`${server.url}/healthz`)).status, 200);
    });
  }

  it('an expired token, and a token for somebody else: 401 and 403', async () => {
    const earlier = await snapshot(client);
    const expired = await token({ role: 'authenticated', sub: 'ann', exp: 1_700_000_000 });
    assertRefusal(await claim(server.url, 'p', GOOD, bearer(expired)), 401, 'auth_required');
    const bobs = await token({ role: 'authenticated', sub: 'bob' });
    assertRefusal(await claim(server.url, 'p', GOOD, bearer(bobs)), 403, 'not_yours');
    assert.deepEqual(await snapshot(client), earlier);
  });

  it('text that looks like SQL is text', async () => {
    const user_id = `'; drop table public.claims; --`;
    const { status, json } = await claim(server.url, 'p', { user_id, request_id: '{"a","b"}' });
    assert.deepEqual([status, json.user_id, json.request_id], [201, user_id, '{"a","b"}']);
  });
});
