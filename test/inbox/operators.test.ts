// The inbox as operators see it: the admin API, the command line, and the numbers.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/server/server.ts';
import { runHere } from '../cli/support.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer } from '../server/support.ts';
import { InboxWorld, until } from './world.ts';

describe('operators', () => {
  let world: InboxWorld;
  let server: RunningServer;
  before(async () => {
    world = await InboxWorld.start();
    server = await world.startServer();
    await world.copied('endpoint', 'twilio');
    world.cut();
    assert.equal((await world.ring(server, 'CAops')).json.status, 'accepted');
  });
  after(() => world?.stop());

  const api = (path: string, body?: unknown) =>
    ask(`${server.url}/admin/webhooks/${path}`, {
      headers: bearer(ADMIN_KEY),
      ...(body !== undefined && { method: 'POST', body }),
    });
  const cli = (...words: string[]) =>
    runHere(['webhooks', ...words], {
      DB1_URL: world.databases.db1.url,
      DB2_URL: world.databases.db2.url,
      USER: 'bob',
    });

  it('see what waits, without bodies, by the API and by the command line', async () => {
    const { status, json } = await api('inbox');
    assert.equal(status, 200);
    const [delivery] = json.deliveries;
    assert.deepEqual(
      [delivery.kind, delivery.door, delivery.ids, delivery.dead_since],
      ['event', 'twilio', ['call:CAops:completed'], null],
    );
    assert.doesNotMatch(JSON.stringify(json), /CallDuration/);
    assertRefusal(await ask(`${server.url}/admin/webhooks/inbox`), 401, 'auth_required');
    assertRefusal(await api('inbox?state=perhaps'), 422, 'invalid_input');
    const listed = await cli('inbox');
    assert.match(listed.stdout, /event\s+twilio\s+call:CAops:completed/);
    const events = await cli('list');
    assert.match(events.stdout, /No such events/);
    assert.match(events.stderr, /In the inbox: 1 waiting for DB2, the oldest for [\d.]+ s/);
  });

  it('see it in the metrics', async () => {
    const { text } = await ask(`${server.url}/metrics`, { headers: bearer(ADMIN_KEY) });
    assert.match(text, /^sluice_inbox_depth 1$/m);
    assert.match(text, /^sluice_inbox_oldest_seconds [\d.]+$/m);
    assert.match(text, /^sluice_inbox_doors_age_seconds [\d.]+$/m);
  });

  it('replay and discard its dead letters, with an audit row each', async () => {
    await world.db1.query(`update pgmq.q_event_inbox set vt = clock_timestamp()`);
    const { rows } = await world.db1.query('select msg_id, read_ct from public.inbox_take(1, 60)');
    const taken = [rows[0].msg_id, rows[0].read_ct];
    await world.db1.query(
      `select public.inbox_finish(array[$1::bigint], array[$2::int], '{dead_letter}', '{no}')`,
      taken,
    );
    const dead = (await api('inbox?state=dead_letter')).json.deliveries;
    assert.deepEqual(
      dead.map((letter: { error: string }) => letter.error),
      ['no'],
    );
    const id = dead[0].msg_id;
    assert.match((await cli('inbox', 'list', '--dead')).stdout, /\bno\b/);
    assertRefusal(await api('inbox/replay', { msg_ids: [] }), 422, 'invalid_input');
    assert.deepEqual((await api('inbox/replay', { msg_ids: [id], reason: 'mended' })).json, {
      results: [{ msg_id: id, outcome: 'replayed' }],
    });
    const again = await cli('inbox', 'discard', String(id));
    assert.deepEqual([again.code, again.stdout.trim()], [1, `${id} unknown`]);
    const audit = await world.db1.query(
      `select actor, action, reason from audit.audit_logs where action like 'inbox%'`,
    );
    assert.deepEqual(audit.rows, [{ actor: 'admin', action: 'inbox_replay', reason: 'mended' }]);
    world.heal();
    await until(async () => {
      await world.carry();
      return (await world.waiting()) === 0;
    });
    assert.equal((await world.events('call:CAops:completed')).length, 1);
    assert.match((await cli('inbox')).stdout, /The inbox is empty/);
    assert.doesNotMatch((await cli('list')).stderr, /inbox/);
  });

  it('say of an endpoint what it does while DB2 is away', async () => {
    const change = (on_outage: string) =>
      api('endpoints/change', { name: 'refusing', changes: { on_outage } });
    assert.equal((await change('accept')).json.on_outage, 'accept');
    assertRefusal(await change('perhaps'), 422, 'invalid_input');
    const changed = await cli('endpoints', 'change', 'refusing', '--on-outage', 'refuse', '--json');
    assert.equal(JSON.parse(changed.stdout).endpoints[0].on_outage, 'refuse');
    assert.equal((await cli('endpoints', 'change', 'refusing', '--on-outage', 'perhaps')).code, 2);
  });
});
