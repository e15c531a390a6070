// A handler that hangs, an event that is delivered again meanwhile, a locked row: the other events go on.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { ADMIN_KEY, type Answer, JWT_SECRET } from '../server/support.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { paymentEvent, SECRETS, send, WebhookWorld } from './world.ts';

const SLOW_EVENTS = 8;
const OTHERS = 50;
/** What the others may need beside the slow ones. They waited 3 s and got 503 where they shared connections. */
const LATE_MS = 2_000;
const WAIT_MS = 10_000;

describe('beside an inline handler that hangs', () => {
  let world: WebhookWorld;
  let elsewhere: RunningServer;
  let holder: Session;
  let serial = 0;

  before(async () => {
    world = await WebhookWorld.start();
    elsewhere = await startServer({
      port: 0,
      db1Url: world.databases.db1.url,
      db2Url: world.databases.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => SECRETS[name],
    });
    holder = await openSession(world.databases.db2.url);
    await world.db2.query(`
      create schema app;
      create table app.effects (event_id text not null);
      -- Waits for the gate, and lets the test see that it does.
      create function app.slow(p_event public.webhook_events) returns text language plpgsql set lock_timeout = 0 as $$
      begin
        perform pg_advisory_xact_lock_shared(13);
        insert into app.effects values (p_event.event_id);
        return null;
      end $$;
      insert into public.webhook_handlers (provider, event_type, kind, name)
      values ('stripe', 'slow.act', 'sql', 'app.slow')`);
    for (const [name, mode] of [
      ['slow', 'inline'],
      ['inline', 'inline'],
      ['queued', 'queued'],
      ['late', 'queued'],
    ] as const)
      await world.addEndpoint(name, 'stripe', mode);
  });
  after(async () => {
    await holder?.close();
    await elsewhere?.stop();
    await world?.stop();
  });
  beforeEach(() => world.db2.query('truncate public.webhook_events, app.effects'));

  const post = (endpoint: string, id: string, type?: string, server: RunningServer = world.server) =>
    send({
      url: `${server.url}/webhooks/${endpoint}`,
      provider: 'stripe',
      body: paymentEvent(id, { ...(type && { type }), metadata: { user_id: 'ann' } }),
    });
  const others = (endpoint: string) =>
    Promise.all(Array.from({ length: OTHERS }, () => post(endpoint, `evt_other_${++serial}`)));
  const inTime = async (work: Promise<Answer[]>): Promise<Answer[]> => {
    const startedMs = Date.now();
    const answers = await work;
    const tookMs = Date.now() - startedMs;
    assert(tookMs < LATE_MS, `they took ${tookMs} ms`);
    return answers;
  };
  const statuses = (answers: readonly Answer[]) => [
    ...new Set(answers.map(({ status, json }) => `${status} ${json.status ?? json.error.code}`)),
  ];
  const effectsOf = async (id: string) =>
    (await world.rows('select event_id from app.effects where event_id = $1', [id])).length;
  const waiting = async (count: number) => {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const [row] = await world.rows<{ sessions: number }>(
        `select count(*)::int as sessions from pg_locks where locktype = 'advisory' and objid = 13 and not granted`,
      );
      if ((row?.sessions ?? 0) >= count) return;
      assert(Date.now() < deadline, `${row?.sessions} sessions wait, not ${count}`);
      await sleep(5);
    }
  };
  const shut = () => holder.value('select pg_advisory_lock(13)');
  const open = () => holder.value('select pg_advisory_unlock(13)');

  it('other endpoints record and other handlers take effect, also one that was never asked for before', async () => {
    await shut();
    const slow = Array.from({ length: SLOW_EVENTS }, (_, at) => post('slow', `evt_slow_${at}`, 'slow.act'));
    await waiting(4);
    assert.deepEqual(statuses(await inTime(others('queued'))), ['200 recorded']);
    assert.deepEqual(statuses(await inTime(others('late'))), ['200 recorded']);
    assert.deepEqual(statuses(await inTime(others('inline'))), ['200 processed']);
    await open();
    // Its own limit is its own: what finds no room is recorded, refused for now, and goes on later.
    for (const { status, headers } of await Promise.all(slow))
      assert(status === 200 || (status === 503 && headers['retry-after'] === '1'), `${status}`);
    assert.deepEqual(
      await world.rows(
        `select count(*)::int as events, count(*) filter (where e.status = 'success')::int
           = (select count(*)::int from app.effects) as agree
         from public.webhook_events e where e.event_type = 'slow.act'`,
      ),
      [{ events: SLOW_EVENTS, agree: true }],
    );
  });

  it('its event delivered again among fifty others holds up none of them, and takes effect once', async () => {
    await shut();
    const first = post('slow', 'evt_again', 'slow.act');
    await waiting(1);
    const joined = post('slow', 'evt_again', 'slow.act');
    const [told] = await inTime(Promise.all([post('slow', 'evt_again', 'slow.act', elsewhere)]));
    assert.equal(told?.json.status, 'duplicate');
    const again = post('slow', 'evt_again', 'slow.act');
    assert.deepEqual(statuses(await inTime(others('queued'))), ['200 recorded']);
    assert.deepEqual(statuses(await inTime(others('inline'))), ['200 processed']);
    await open();
    assert.deepEqual(statuses(await Promise.all([first])), ['200 processed']);
    assert.deepEqual(statuses(await Promise.all([joined, again])), ['200 duplicate']);
    assert.equal(await effectsOf('evt_again'), 1);
  });

  it('a known event whose row another transaction is changing is a duplicate at once', async () => {
    await post('queued', 'evt_held');
    await holder.client.query(
      `begin; update public.webhook_events set error = 'mine' where event_id = 'evt_held'`,
    );
    try {
      const all = Promise.all([post('queued', 'evt_held'), others('queued')]);
      const [held, ...rest] = await inTime(all.then(([one, more]) => [one, ...more]));
      assert.equal(held?.json.status, 'duplicate');
      assert.deepEqual(statuses(rest), ['200 recorded']);
    } finally {
      await holder.client.query('rollback');
    }
  });

  it('an id that an open transaction is about to insert is refused for now, and its neighbours are not', async () => {
    await holder.client.query(
      `begin; insert into public.webhook_events (webhook_id, provider, event_id)
       select webhook_id, 'stripe', 'evt_stuck' from public.webhook_endpoints where name = 'queued'`,
    );
    try {
      const [before, stuck, behind] = await Promise.all([
        others('queued'),
        post('queued', 'evt_stuck'),
        others('queued'),
      ]);
      assert.deepEqual(statuses([...before, ...behind]), ['200 recorded']);
      assert.deepEqual([stuck.status, stuck.headers['retry-after']], [503, '1']);
    } finally {
      await holder.client.query('rollback');
    }
    assert.equal((await post('queued', 'evt_stuck')).json.status, 'recorded');
  });
});
