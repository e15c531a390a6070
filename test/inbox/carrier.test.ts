// Who carries the inbox on: several workers, workers that die, and deliveries that DB2 does not want.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import { startInboxCrew } from '../../src/inbox/crew.ts';
import { createLog } from '../../src/log.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startWork } from '../webhook/processes.ts';
import { at, InboxWorld, until } from './world.ts';

describe('the inbox', () => {
  let world: InboxWorld;
  let server: RunningServer;
  let other: RunningServer;
  before(async () => {
    world = await InboxWorld.start();
    server = await world.startServer();
    other = await world.startServer();
    await world.copied('endpoint', 'refusing');
  });
  after(() => world?.stop());
  afterEach(() => world.recover(server));

  const crew = (leaseSec?: number) =>
    startInboxCrew({
      db1Url: world.databases.db1.url,
      db2Url: at(world.databases.db2.url, world.wires.db2.port),
      metrics: NO_METRICS,
      log: createLog('silent'),
      ...(leaseSec && { leaseSec }),
    });
  const count = async (like: string) =>
    (
      await world.db2.query(
        'select count(*)::int as rows, count(distinct event_id)::int as ids from public.webhook_events where event_id like $1',
        [like],
      )
    ).rows[0];

  it('is carried by two workers of two servers, each event once, also while DB2 comes and goes', async () => {
    const crews = [crew(), crew()];
    try {
      world.cut();
      const ids = Array.from({ length: 60 }, (_, at) => `evt_many_${at}`);
      const answers = await Promise.all(
        ids.map((id, at) => world.post(at % 2 === 0 ? server : other, 'stripe', id)),
      );
      assert.deepEqual([...new Set(answers.map(({ json }) => json.status))], ['accepted']);
      world.heal();
      world.wires.db2.begin({ kind: 'cut-after-request', probability: 0.3 });
      await until(async () => (await count('evt_many_%')).ids > 0);
      world.heal();
      await until(async () => (await world.waiting()) === 0);
      assert.deepEqual(await count('evt_many_%'), { rows: 60, ids: 60 });
    } finally {
      await Promise.all(crews.map((one) => one.stop()));
    }
  });

  it('loses nothing with a worker that is killed: another one takes over', async () => {
    world.cut();
    for (const id of ['evt_killed_1', 'evt_killed_2'])
      assert.equal((await world.post(server, 'stripe', id)).json.status, 'accepted');
    world.heal();
    // The record is held up by a key that another session is about to insert.
    await world.db2.query('begin');
    await world.db2.query(
      `insert into public.webhook_events (webhook_id, provider, event_id)
       select webhook_id, tenant, 'evt_killed_1' from public.webhook_endpoints where name = 'stripe'`,
    );
    const work = await startWork({
      db1Url: world.databases.db1.url,
      db2Url: at(world.databases.db2.url, world.wires.db2.port),
    });
    await until(async () => {
      const { rows } = await world.db1.query(
        'select from pgmq.q_event_inbox where vt > now() and read_ct > 0',
      );
      return rows.length > 0;
    });
    await work.kill();
    await world.db2.query('rollback');
    // Its lease runs out.
    await world.db1.query('update pgmq.q_event_inbox set vt = clock_timestamp()');
    const heir = crew();
    await until(async () => (await world.waiting()) === 0);
    await heir.stop();
    assert.deepEqual(await count('evt_killed_%'), { rows: 2, ids: 2 });
  });

  it('hands back what it holds when it is stopped, uncounted', async () => {
    world.cut();
    assert.equal((await world.post(server, 'stripe', 'evt_stopped')).json.status, 'accepted');
    const stopped = crew();
    await until(async () => {
      const { rows } = await world.db1.query('select message from pgmq.q_event_inbox');
      return rows[0].message.seen > 0;
    });
    await stopped.stop();
    const { rows } = await world.db1.query('select message from pgmq.q_event_inbox');
    assert.deepEqual([rows.length, rows[0].message.tried], [1, undefined]);
    world.heal();
    await until(async () => (await world.carry()).totals.recorded === 1);
  });

  it('keeps what DB2 refuses for good, until an operator replays it', async () => {
    world.cut();
    for (const id of ['evt_refused', 'evt_beside'])
      assert.equal((await world.post(server, 'stripe', id)).json.status, 'accepted');
    world.heal();
    await world.db2.query(
      `alter table public.webhook_events add constraint not_this check (event_id <> 'evt_refused')`,
    );
    await until(async () => {
      await world.carry();
      return (await world.waiting()) === 0;
    });
    assert.deepEqual(await count('evt_beside'), { rows: 1, ids: 1 });
    const [letter] = (await world.db1.query('select * from public.inbox_list(true)')).rows;
    assert.deepEqual([letter.door, letter.ids], ['stripe', ['evt_refused']]);
    assert.match(letter.error, /not_this/);
    await world.db2.query('alter table public.webhook_events drop constraint not_this');
    await world.db1.query('select public.inbox_replay(array[$1::bigint], $2)', [letter.msg_id, 'ann']);
    await until(async () => (await world.carry()).totals.recorded === 1);
    assert.deepEqual(await count('evt_refused'), { rows: 1, ids: 1 });
  });

  it('uses up no attempt of a delivery while DB2 lacks its functions', async () => {
    world.cut();
    assert.equal((await world.post(server, 'stripe', 'evt_migrated')).json.status, 'accepted');
    world.heal();
    await world.db2.query('alter function webhook.record_events rename to record_events_away');
    try {
      assert.deepEqual(await world.carry(), { totals: { outage: 1 }, isPaused: true });
    } finally {
      await world.db2.query('alter function webhook.record_events_away rename to record_events');
    }
    await until(async () => (await world.carry()).totals.recorded === 1);
  });
});
