// The door with a database that fails when told: what the cache may say, and when.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryReplayCache, type ReplayCache } from '#core/calls/replay_cache.ts';
import { CallRoutes } from '#core/calls/routes.ts';
import type { Call, CallStore } from '#core/calls/store.ts';
import { HttpError } from '#core/errors.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { askRoutes, memoryLog } from '../core/support.ts';
import { callBody, countMetrics, NOOP, SECRETS, SITE, signedRequest } from './support.ts';

function open(cache: ReplayCache = new MemoryReplayCache(Date.now), deliveryMs?: number) {
  const stored = new Map<string, Call>();
  const database = { isDown: false, isSilent: false, questions: 0, batches: 0 };
  const store: CallStore = {
    async findSite(site_id) {
      database.questions++;
      if (database.isDown) throw new HttpError('database_unavailable');
      if (site_id !== SITE) return undefined;
      const site = { site_id, secret_names: ['SITE_SECRET'], require_signature: true, kinds: null };
      return { ...site, is_active: true, on_outage: 'refuse' as const, created_at: '' };
    },
    async recordCalls(calls) {
      database.batches++;
      if (database.isSilent) return new Promise<never>(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
      if (database.isDown) throw new HttpError('database_unavailable');
      return calls.map((call) => {
        const key = call.signatureHash ?? '';
        if (stored.has(key)) return { id: key, outcome: 'duplicate' as const };
        stored.set(key, call);
        return { id: key, outcome: 'recorded' as const };
      });
    },
  };
  const findSecret = async () => ({ is_allowed: true, value: null });
  const ports = { store, cache, secretOf: (name: string) => SECRETS[name], findSecret, hmac: nodeHmac };
  const door = new CallRoutes(
    { ...ports, metrics: countMetrics(), log: memoryLog(), now: Date.now },
    deliveryMs,
  );
  const ask = askRoutes(door.routes());
  const send = (request: ReturnType<typeof signedRequest>) =>
    ask({ method: 'POST', path: '/call-events', headers: request.headers, body: request.body });
  return { send, stored, database, door };
}

describe('the door for call events', () => {
  it('takes a request whose first attempt failed for new', async () => {
    const { send, stored, database } = open();
    const request = signedRequest(callBody());
    assert.equal((await send(signedRequest(callBody({ kind: 'first' })))).status, 200);
    database.isDown = true;
    assert.equal((await send(request)).status, 503);
    database.isDown = false;
    const again = await send(request);
    assert.deepEqual([again.status, again.json.status], [200, 'recorded']);
    assert.equal(stored.size, 2);
  });

  it('would lose it with a cache that is marked before the commit: the order is what holds', async () => {
    const seen = new Set<string>();
    const hasty: ReplayCache = {
      claim: (key) => {
        if (seen.has(key)) return 'done';
        seen.add(key);
        return 'claimed';
      },
      done: () => undefined,
      release: () => undefined,
    };
    const { send, stored, database } = open(hasty);
    const request = signedRequest(callBody());
    await send(signedRequest(callBody({ kind: 'first' })));
    database.isDown = true;
    assert.equal((await send(request)).status, 503);
    database.isDown = false;
    assert.deepEqual((await send(request)).json, NOOP);
    assert.equal(stored.size, 1);
  });

  it('answers noop for a request that another one is storing only once it is stored', async () => {
    const { send, database, stored } = open();
    const request = signedRequest(callBody());
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(request)));
    assert.deepEqual(answers.map(({ json }) => json.status).sort(), [...Array(9).fill('noop'), 'recorded']);
    assert.equal(stored.size, 1);
    database.isDown = true;
    const other = signedRequest(callBody({ kind: 'other' }));
    const failed = await Promise.all(Array.from({ length: 10 }, () => send(other)));
    for (const { status } of failed) assert.equal(status, 503);
  });

  it('says 503 when the database has been silent for long enough', async () => {
    const { send, database } = open(new MemoryReplayCache(Date.now), 20);
    database.isSilent = true;
    const answer = await send(signedRequest(callBody()));
    assert.deepEqual([answer.status, answer.json.error.code], [503, 'database_unavailable']);
  });

  it('answers a site that there is and one that there is not alike, and asks for no token', async () => {
    const { send } = open();
    const { headers, body } = signedRequest(callBody());
    const { 'x-ops-signature': _, ...unsigned } = headers;
    const wrong = { ...headers, 'x-ops-signature': 'a'.repeat(64) };
    for (const given of [
      unsigned,
      wrong,
      { ...wrong, 'x-ops-signature': 'no' },
      { ...wrong, 'x-ops-timestamp': 'now' },
      { ...wrong, 'x-ops-timestamp': '1000000000' },
    ]) {
      const known = await send({ headers: given, body } as ReturnType<typeof signedRequest>);
      const unknown = await send({
        headers: { ...given, 'x-ops-site': 'unknown' },
        body,
      } as ReturnType<typeof signedRequest>);
      assert.deepEqual([known.status, known.headers['www-authenticate']], [401, undefined]);
      assert.deepEqual(unknown, known);
    }
  });

  it('lists all fields when a request has an unknown one', async () => {
    const { json } = await open().send(signedRequest(callBody({ extra: 1 })));
    assert.match(json.error.hint, /known are event_id, kind, occurred_at, payload\./);
  });

  it('asks for a site once, however many events arrive', async () => {
    const { send, database } = open();
    await Promise.all(
      Array.from({ length: 20 }, (_, line) => send(signedRequest(callBody({ payload: { line } })))),
    );
    assert.equal(database.questions, 1);
    assert.ok(database.batches < 20, `${database.batches} statements for 20 events`);
  });

  it('answers what it has taken before it stops, and takes nothing new', async () => {
    const { send, door, stored } = open();
    await send(signedRequest(callBody({ kind: 'first' })));
    const taken = send(signedRequest(callBody()));
    await new Promise((resolve) => setImmediate(resolve));
    await door.drain();
    assert.equal((await taken).status, 200);
    assert.equal((await send(signedRequest(callBody({ kind: 'late' })))).status, 503);
    assert.equal(stored.size, 2);
  });
});
