// The admin key opens the claim routes too: a client that guesses there is counted with those that guess at the sign-in. The
// right key always passes.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { NO_METRICS } from '#core/ports.ts';
import { type HttpRequest, Router } from '#core/router.ts';
import { AddressLimits } from '../../src/server/address_limits.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { createTokenPorts } from '../../src/server/tokens.ts';
import { CLAIM_ID, memoryLog, memoryPorts } from '../core/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ADMIN_KEY, ask, bearer, JWT_SECRET, startTestServer, token } from './support.ts';

const CLAIM_DOORS = [
  ['GET', `/v1/claims/${CLAIM_ID}`],
  ['DELETE', `/v1/claims/${CLAIM_ID}`],
  ['POST', '/v1/pools/p/claims'],
] as const;
const SESSION = '/admin/session';
const INTERVAL_MS = 200;

function open(trustedProxies = 0) {
  const world = { nowMs: 0 };
  const proxy = { trustedProxies };
  const now = () => world.nowMs;
  const { signIns } = new AddressLimits({}, { proxy, metrics: NO_METRICS, log: memoryLog(), now });
  const auth = new OperatorAuth(ADMIN_KEY, now, { proxy, wrongKeys: signIns });
  const claims = new ClaimRoutes({ ...memoryPorts(), ...createTokenPorts({ jwtSecret: JWT_SECRET }, auth) });
  const door = new Router([...claims.routes(), ...auth.routes()], memoryLog());
  const send = async (method: string, path: string, key?: string, peer = '192.0.2.1', forwarded?: string) => {
    const asked: HttpRequest = {
      method,
      path,
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && bearer(key)),
        ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
      },
      body: Buffer.from('{"user_id":"ann"}'),
      requestId: 'r',
      peer,
    };
    return (await door.handle(door.find(method, path), asked)).status;
  };
  return { world, send };
}

describe('a wrong key at a claim route', () => {
  for (const [method, path] of CLAIM_DOORS) {
    it(`is answered 429 after five of them, and the right one as ever: ${method} ${path}`, async () => {
      const { world, send } = open();
      for (let guess = 0; guess < 5; guess++) assert.equal(await send(method, path, `guess-${guess}`), 401);
      for (const [again, door] of [...CLAIM_DOORS, ['GET', SESSION]] as const)
        assert.equal(await send(again, door, 'guess'), 429, `a wrong one at ${again} ${door}`);
      assert.equal(await send('GET', SESSION, ADMIN_KEY), 200, 'the right one');
      assert.equal(await send(method, path, ADMIN_KEY), path.includes('pools') ? 201 : 404, 'the right one');
      assert.equal(await send(method, path, 'guess', '192.0.2.2'), 401, 'another address');
      world.nowMs += INTERVAL_MS;
      assert.equal(await send(method, path, 'guess'), 401);
      assert.equal(await send(method, path, 'guess'), 429);
    });
  }

  it("is counted with those at the operators' routes", async () => {
    const { send } = open();
    for (let guess = 0; guess < 5; guess++) assert.equal(await send('GET', SESSION, 'guess'), 401);
    for (const [method, path] of CLAIM_DOORS) assert.equal(await send(method, path, 'guess'), 429);
  });

  it('is counted for its address, whichever port the proxy wrote behind it', async () => {
    const { send } = open(1);
    const guess = (forwarded: string) => send('GET', SESSION, 'guess', '10.0.0.1', forwarded);
    for (let port = 1; port <= 5; port++) assert.equal(await guess(`203.0.113.9:${port}`), 401);
    assert.equal(await guess('203.0.113.9:6'), 429);
    assert.equal(await guess('203.0.113.9'), 429);
    assert.equal(await guess('203.0.113.10'), 401);
  });
});

describe('a token that has expired', () => {
  const [method, path] = CLAIM_DOORS[0];

  it('does not count as a wrong key, however often it is sent', async () => {
    const { send } = open();
    const expired = await token({ role: 'authenticated', sub: 'ann', exp: 1 });
    for (let time = 0; time < 20; time++) assert.equal(await send(method, path, expired), 401);
    assert.equal(await send(method, path, ADMIN_KEY), 404);
  });

  it('is answered 401 where wrong keys are answered 429, and a good one or none at all as ever', async () => {
    const { send } = open();
    for (let guess = 0; guess < 5; guess++) await send(method, path, 'guess');
    assert.equal(await send(method, path, 'guess'), 429);
    assert.equal(await send(method, path, await token({ role: 'authenticated', sub: 'ann', exp: 1 })), 401);
    assert.equal(await send(method, path, await token({ role: 'authenticated', sub: 'ann' })), 404);
    assert.equal(await send(method, path), 404);
  });
});

describe('the server', () => {
  let databases: TestDatabases;
  let server: RunningServer;
  before(async () => {
    databases = await startDatabases();
    // One token an hour, so that a machine that stands still changes nothing.
    const signIns = { burst: 1, perSec: 1 / 3_600 };
    server = await startTestServer(databases, { limits: { signIns, loopback: true } });
  });
  after(async () => {
    await server?.stop();
    await databases?.stop();
  });

  it('counts them in one place, and says how long to wait', async () => {
    const send = (path: string, key: string) => ask(`${server.url}${path}`, { headers: bearer(key) });
    assert.equal((await send(CLAIM_DOORS[0][1], 'guess')).status, 401);
    const refused = await send(SESSION, 'guess');
    assert.deepEqual([refused.status, refused.json.error.code], [429, 'too_many_attempts']);
    assert.equal(refused.headers['retry-after'], '3600');
    assert.equal(refused.headers['ratelimit-policy'], '"sign_ins";q=1;w=3600');
    assert.equal(refused.headers.ratelimit, '"sign_ins";r=0;t=3600');
    assert.equal((await send(SESSION, ADMIN_KEY)).status, 200);
  });
});
