// What recognises a second delivery: the cache, the database, or neither.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import type pg from 'pg';
import { type Answer, assertRefusal, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  addSites,
  type CallServer,
  callBody,
  countCalls,
  countMetrics,
  NOOP,
  nowSec,
  OPEN_SITE,
  OTHER_SECRET,
  OTHER_SITE,
  post,
  SECRETS,
  SITE,
  signedRequest,
  startCallServer,
} from './support.ts';

describe('the behaviour matrix of call events', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let first: CallServer;
  let second: CallServer;
  const metrics = countMetrics();

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = await openClient(databases.db2.url);
    await addSites(client);
    first = await startCallServer({ db2Url: databases.db2.url, metrics });
    second = await startCallServer({ db2Url: databases.db2.url, metrics });
  });
  beforeEach(async () => {
    await client.query('truncate public.calls');
    metrics.counts.clear();
  });
  after(async () => {
    await first?.stop();
    await second?.stop();
    await client?.end();
    await databases?.stop();
  });

  const unsigned = {
    headers: { 'x-ops-site': OPEN_SITE },
    body: JSON.stringify(callBody({ event_id: 'e' })),
  };

  const ROWS = [
    {
      name: 'a replay-cache hit is a noop without a question to the database',
      request: () => signedRequest(callBody({ payload: { row: 1 } })),
      again: () => first,
      answer: NOOP,
      counted: `${SITE} noop replay_cache`,
      rows: 1,
    },
    {
      name: 'a cache miss with a conflict in the database is a noop',
      request: () => signedRequest(callBody({ payload: { row: 2 } })),
      again: () => second,
      answer: NOOP,
      counted: `${SITE} noop idempotent_conflict`,
      rows: 1,
    },
    {
      name: 'without a signature, where none is required, nothing conflicts',
      request: () => unsigned,
      again: () => first,
      answer: { status: 'recorded' },
      counted: `${OPEN_SITE} recorded`,
      rows: 2,
    },
  ];
  for (const { name, request, again, answer, counted, rows } of ROWS) {
    it(name, async () => {
      const same = request();
      const one = await post(first.url, same);
      assert.equal(one.status, 200, one.text);
      assert.equal(one.json.status, 'recorded');
      const two = await post(again().url, same);
      assert.equal(two.status, 200, two.text);
      const { id: _, ...rest } = two.json;
      assert.deepEqual(rest, answer);
      assert.ok(metrics.counts.has(counted), JSON.stringify([...metrics.counts]));
      assert.equal(await countCalls(client), rows);
    });
  }

  it('a call is stored as it was sent, with the hash of its signature', async () => {
    const request = signedRequest(callBody({ event_id: 'e-1', kind: 'hangup' }));
    const { json } = await post(first.url, request);
    const { rows } = await client.query(
      `select id, site_id, event_id, kind, payload, occurred_at::text, signature_hash from public.calls`,
    );
    const hash = createHash('sha256')
      .update(request.headers['x-ops-signature'] ?? '', 'utf8')
      .digest('hex');
    assert.deepEqual(rows, [
      {
        id: json.id,
        site_id: SITE,
        event_id: 'e-1',
        kind: 'hangup',
        payload: { line: 7 },
        occurred_at: '2026-02-24 10:00:00.123456+00',
        signature_hash: hash,
      },
    ]);
  });

  it('a call without a signature has no hash', async () => {
    await post(first.url, unsigned);
    const { rows } = await client.query('select signature_hash from public.calls');
    assert.deepEqual(rows, [{ signature_hash: null }]);
  });

  it('an event that is signed anew is a noop, and with another body a conflict', async () => {
    const at = (seconds: number) => ({ timestamp: String(nowSec() - seconds) });
    assert.equal((await post(first.url, signedRequest(callBody({ event_id: 'e' }), at(5)))).status, 200);
    const again = await post(first.url, signedRequest(callBody({ event_id: 'e' }), at(4)));
    assert.deepEqual([again.status, again.json], [200, NOOP]);
    const differs = callBody({ event_id: 'e', payload: { line: 8 } });
    const conflicts: Answer[] = [];
    for (const server of [first, second, first])
      conflicts.push(await post(server.url, signedRequest(differs, at(3))));
    for (const answer of conflicts) assertRefusal(answer, 409, 'event_conflict');
    assert.equal(await countCalls(client), 1);
  });

  it('any of the secrets of a site signs, so that they can be rotated', async () => {
    const old = signedRequest(callBody(), { secret: SECRETS.OLD_SECRET ?? '' });
    assert.equal((await post(first.url, old)).json.status, 'recorded');
  });

  it('a site may send its own kinds and no others', async () => {
    const from = { site: OTHER_SITE, secret: OTHER_SECRET };
    assert.equal((await post(first.url, signedRequest(callBody({ kind: 'ring' }), from))).status, 200);
    assertRefusal(
      await post(first.url, signedRequest(callBody({ kind: 'fax' }), from)),
      422,
      'invalid_input',
    );
  });

  it('a site that is disabled is refused soon', async () => {
    await client.query('update public.call_sites set is_active = false where site_id = $1', [OTHER_SITE]);
    const send = (line: number) =>
      post(
        first.url,
        signedRequest(callBody({ payload: { line } }), { site: OTHER_SITE, secret: OTHER_SECRET }),
      );
    const deadline = Date.now() + 10_000;
    let answer = await send(0);
    for (let line = 1; answer.status === 200 && Date.now() < deadline; line++) answer = await send(line);
    assertRefusal(answer, 401, 'bad_signature');
  });
});
