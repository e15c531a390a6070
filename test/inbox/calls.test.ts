import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/server/server.ts';
import {
  addSites,
  callBody,
  countCalls,
  NOOP,
  OPEN_SITE,
  OTHER_SECRET,
  OTHER_SITE,
  post,
  SITE,
  signedRequest,
} from '../calls/support.ts';
import { assertRefusal } from '../server/support.ts';
import { InboxWorld, until } from './world.ts';

describe('a call event while DB2 is away', () => {
  let world: InboxWorld;
  let server: RunningServer;
  before(async () => {
    world = await InboxWorld.start();
    await addSites(world.db2);
    await world.db2.query(`update public.call_sites set on_outage = 'accept' where site_id = any ($1)`, [
      [SITE, OPEN_SITE],
    ]);
    server = await world.startServer();
    await world.copied('site', SITE);
  });
  after(() => world?.stop());
  afterEach(() => world.recover(server));

  it('is accepted, recorded once when DB2 is back, and a noop when it comes again meanwhile', async () => {
    const request = signedRequest(callBody({ payload: { line: 7 } }));
    world.cut();
    const sentAt = Date.now();
    assert.deepEqual((await post(server.url, request)).json, { status: 'accepted' });
    assert.deepEqual((await post(server.url, request)).json, NOOP, 'the replay cache knows it');
    assert.equal(await world.waiting(), 1);
    world.heal();
    await until(async () => (await world.carry()).totals.recorded === 1);
    const { rows } = await world.db2.query('select payload, received_at from public.calls');
    assert.deepEqual([rows.length, rows[0].payload], [1, { line: 7 }]);
    assert.ok(Number(rows[0].received_at) >= sentAt && Number(rows[0].received_at) <= Date.now());
    assert.deepEqual((await post(server.url, request)).json, NOOP);
  });

  it('is refused where its site refuses, and forgeries and unknown sites are', async () => {
    world.cut();
    const other = signedRequest(callBody({ kind: 'ring' }), { site: OTHER_SITE, secret: OTHER_SECRET });
    assertRefusal(await post(server.url, other), 503, 'database_unavailable');
    const forged = signedRequest(callBody({}), { secret: 'secret-of-a-forger-xx' });
    assertRefusal(await post(server.url, forged), 401, 'bad_signature');
    const unknown = signedRequest(callBody({}), { site: 'unknown' });
    assertRefusal(await post(server.url, unknown), 401, 'bad_signature');
    assert.equal(await world.waiting(), 0);
  });

  it('without a signature is one row although DB2 had recorded it and its answer was lost', async () => {
    const before = await countCalls(world.db2);
    const body = JSON.stringify(callBody({ payload: { unsigned: 'the-reply-is-cut' } }));
    const cut = world.replies.cutReplyTo('the-reply-is-cut');
    const answer = await post(server.url, {
      body,
      headers: { 'content-type': 'application/json', 'x-ops-site': OPEN_SITE },
    });
    await cut;
    assert.deepEqual(answer.json, { status: 'accepted' });
    assert.equal(await countCalls(world.db2), before + 1, 'DB2 has it');
    await until(async () => (await world.carry()).totals.recorded === 1);
    assert.equal(await countCalls(world.db2), before + 1);
  });

  it('whose id DB2 has with another content is kept as a dead letter', async () => {
    const first = signedRequest(callBody({ event_id: 'call-9', payload: { n: 1 } }));
    await until(async () => (await post(server.url, first)).status === 200);
    world.cut();
    const second = signedRequest(callBody({ event_id: 'call-9', payload: { n: 2 } }));
    assert.equal((await post(server.url, second)).json.status, 'accepted');
    world.heal();
    await until(async () => {
      await world.carry();
      return (await world.waiting()) === 0;
    });
    const { rows } = await world.db1.query('select kind, door, ids, error from public.inbox_list(true)');
    assert.deepEqual(rows, [
      {
        kind: 'call',
        door: SITE,
        ids: ['call-9'],
        error: 'event_conflict: the id is recorded with another content',
      },
    ]);
  });
});
