// The admin key opens the claim doors too: whoever guesses there is counted with whoever guesses at the sign-in.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { type HttpRequest, Router } from '#core/router.ts';
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
const WINDOW_MS = 1_000;

function open() {
  const world = { nowMs: 0 };
  const auth = new OperatorAuth(ADMIN_KEY, () => world.nowMs);
  const claims = new ClaimRoutes({ ...memoryPorts(), ...createTokenPorts({ jwtSecret: JWT_SECRET }, auth) });
  const door = new Router([...claims.routes(), ...auth.routes()], memoryLog());
  const send = async (method: string, path: string, key?: string, peer = '192.0.2.1') => {
    const asked: HttpRequest = {
      method,
      path,
      headers: { 'content-type': 'application/json', ...(key !== undefined && bearer(key)) },
      body: Buffer.from('{"user_id":"ann"}'),
      requestId: 'r',
      peer,
    };
    return (await door.handle(door.find(method, path), asked)).status;
  };
  return { world, send };
}

describe('a wrong key at a claim door', () => {
  for (const [method, path] of CLAIM_DOORS) {
    it(`bars its address after five of them: ${method} ${path}`, async () => {
      const { world, send } = open();
      for (let guess = 0; guess < 5; guess++) assert.equal(await send(method, path, `guess-${guess}`), 401);
      for (const [again, door] of [...CLAIM_DOORS, ['GET', SESSION]] as const)
        assert.equal(await send(again, door, ADMIN_KEY), 429, `the right one at ${again} ${door}`);
      assert.equal(await send(method, path, ADMIN_KEY, '192.0.2.2'), path.includes('pools') ? 201 : 404);
      world.nowMs += WINDOW_MS;
      assert.equal(await send('GET', SESSION, ADMIN_KEY), 204);
    });
  }

  it('is counted with those at the operators’ doors', async () => {
    const { send } = open();
    for (let guess = 0; guess < 5; guess++) assert.equal(await send('GET', SESSION, 'guess'), 401);
    for (const [method, path] of CLAIM_DOORS) assert.equal(await send(method, path, ADMIN_KEY), 429);
  });
});

describe('a token that has expired', () => {
  const [method, path] = CLAIM_DOORS[0];

  it('is no wrong key, however often it is sent', async () => {
    const { send } = open();
    const expired = await token({ role: 'authenticated', sub: 'ann', exp: 1 });
    for (let time = 0; time < 20; time++) assert.equal(await send(method, path, expired), 401);
    assert.equal(await send(method, path, ADMIN_KEY), 404);
  });

  it('is answered 401 where the address is barred, and a good one or none at all as ever', async () => {
    const { send } = open();
    for (let guess = 0; guess < 5; guess++) await send(method, path, 'guess');
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
    server = await startTestServer(databases, { maxWrongKeysPerSec: 1 });
  });
  after(async () => {
    await server?.stop();
    await databases?.stop();
  });

  it('counts them in one place', async () => {
    let startedMs: number;
    let right: number;
    do {
      startedMs = Date.now();
      assert.equal(
        (await ask(`${server.url}${CLAIM_DOORS[0][1]}`, { headers: bearer('guess') })).status,
        401,
      );
      right = (await ask(`${server.url}${SESSION}`, { headers: bearer(ADMIN_KEY) })).status;
      // On a machine that stood still the second is over: that says nothing.
    } while (right !== 429 && Date.now() - startedMs >= WINDOW_MS);
    assert.equal(right, 429);
  });
});
