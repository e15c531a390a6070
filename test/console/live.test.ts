import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import type { IntakeLook, LedgerLook } from '#core/console/sample.ts';
import { type Follow, type HttpResponse, Router } from '#core/router.ts';
import { LiveView } from '../../src/console/live.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  startTestServer,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openEvents, openStream } from './support.ts';

describe('the live view', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'gig', 50);
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });
  const watch = () => openEvents(`${server.url}/admin/live`, bearer(ADMIN_KEY));
  const watchPool = (pool: string) => openEvents(`${server.url}/v1/pools/${pool}/live`);

  it('shows claims as they come, and where their slots went', async () => {
    const events = await watch();
    assert.deepEqual((await events.next('history')).data.rows, []);
    const first = (await events.next('sample')).data;
    assert.deepEqual([first.queue_depth, first.ledger_total, first.db1.ok, first.db2.ok], [0, 0, true, true]);
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(server.url, 'gig', { user_id: `u${index}` })),
    );
    let sample = first;
    while (sample.queue_depth < 20) sample = (await events.next('sample')).data;
    assert.equal(sample.claims_total - first.claims_total, 20);
    assert.deepEqual(sample.pools, [
      { pool_id: 'gig', capacity: 50, available: 30, reserved: 20, consumed: 0 },
    ]);
    events.leave();
  });

  it('gives a new watcher what the others have seen', async () => {
    const first = await watch();
    await first.next('sample');
    const second = await watch();
    const { columns, rows } = (await second.next('history')).data;
    assert(rows.length >= 1);
    assert.equal(rows[0].length, columns.length);
    first.leave();
    second.leave();
  });

  it('shows what is left of a pool to any visitor, and refuses an unknown pool', async () => {
    const events = await watchPool('gig');
    const before = (await events.next('pool')).data;
    assert.deepEqual(Object.keys(before), ['status', 'available', 'capacity', 'opens_at', 'now']);
    assert.deepEqual([before.status, before.capacity], ['open', 50]);
    await claim(server.url, 'gig', { user_id: 'late' });
    let { available } = before;
    while (available !== before.available - 1) available = (await events.next('pool')).data.available;
    events.leave();
    assertRefusal(await ask(`${server.url}/v1/pools/nowhere/live`), 404, 'unknown_pool');
  });

  it('goes on while a database is down: an outage is seen, not an error', async () => {
    const [events, pool] = [await watch(), await watchPool('gig')];
    assert.equal((await events.next('sample')).data.db2.ok, true);
    await db1.end();
    await Promise.all([databases.db1.stop('immediate'), databases.db2.stop('immediate')]);
    let sample = (await events.next('sample')).data;
    while (sample.db1.ok || sample.db2.ok) sample = (await events.next('sample')).data;
    assert.deepEqual([sample.queue_depth, sample.ledger_total, sample.pools], [null, null, null]);
    let news = (await pool.next('pool')).data;
    while (news.status !== null) news = (await pool.next('pool')).data;
    assert.equal(news.available, null);
    const health = await ask(`${server.url}/admin/health`, { headers: bearer(ADMIN_KEY) });
    assert.deepEqual(
      health.json.items.map((item: { status: string }) => item.status),
      ['down', 'down', 'off'],
    );
    events.leave();
    pool.leave();
  });
});

describe('the sampler', () => {
  const look: IntakeLook = {
    enqueued: 0,
    queue_depth: 0,
    oldest_msg_sec: null,
    dlq_depth: 0,
    inbox: { accepted: 0, waiting: 0, oldest_sec: null, dead_letters: 0, doors_age_sec: 1 },
    orders: { held: 0, paying: 0, past_bound: 0, past_bound_sec: null, to_close: 0 },
    pools: [],
    bridge_workers: 0,
  };
  const webhooks = { backlog: 0, oldest_sec: null, dead_letters: 0, payments_without_user: 0, recorded: 0 };
  const orders: LedgerLook['orders'] = {
    outbox: {
      settle: { due: 0, oldest_sec: 0, dead_letters: 0 },
      void: { due: 0, oldest_sec: 0, dead_letters: 0 },
    },
    refunds: { due: 0, review: 0, failed: 0 },
    refunds_oldest_sec: 0,
    braked: 0,
    decisions: { funds: 0, refund: 0, void: 0, ignored: 0 },
  };
  const ledgerLook: LedgerLook = { tickets: 0, webhooks, calls: 0, orders, webhook_workers: 0 };

  async function startView(lookAtLedger: () => Promise<LedgerLook> = async () => ledgerLook) {
    const log = memoryLog();
    const asked = { intake: 0, ledger: 0 };
    let now = 1_000_000_000;
    const view = new LiveView({
      lookAtIntake: async () => {
        asked.intake++;
        return { ...look, enqueued: asked.intake };
      },
      lookAtLedger: () => {
        asked.ledger++;
        return lookAtLedger();
      },
      now: () => now,
      log,
    });
    const gone = new EventEmitter();
    const handle = (): HttpResponse => {
      const { follow, ...answer } = view.answer();
      const announced: Follow = (send, closed, end) => {
        follow?.(send, closed, end);
        closed.addEventListener('abort', () => gone.emit('one'));
      };
      return { ...answer, follow: announced };
    };
    const door = new Router([{ method: 'GET', path: '/live', handle }], log);
    const server = new HttpServer(door, log);
    const url = `http://127.0.0.1:${await server.listen(0)}/live`;
    const advance = (ms: number) => {
      now += ms;
    };
    return { server, url, asked, advance, gone };
  }

  it('asks each database once a second for all who watch, and not at all once they have left', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { server, url, asked, gone } = await startView();
    t.after(() => server.close());
    const pass = async (ms: number) => {
      t.mock.timers.tick(ms);
      await setImmediate();
    };
    assert.deepEqual(asked, { intake: 0, ledger: 0 });
    const readers = await Promise.all(Array.from({ length: 20 }, () => openStream(url)));
    for (const reader of readers) assert.match((await reader.next()) ?? '', /^event: history\n/);
    await pass(0);
    assert.deepEqual(asked, { intake: 1, ledger: 1 });
    await pass(1_000);
    assert.deepEqual(asked, { intake: 2, ledger: 2 });
    const texts = await Promise.all(readers.map((reader) => secondSample(reader)));
    assert.equal(new Set(texts).size, 1, 'all get the same bytes');
    const allGone = new Promise<void>((resolve) => {
      let left = readers.length;
      gone.on('one', () => --left === 0 && resolve());
    });
    for (const reader of readers) reader.leave();
    await allGone;
    await pass(60_000);
    assert.deepEqual(asked, { intake: 2, ledger: 2 });
  });

  it('does not ask again while a database is silent, and shows it as down', async () => {
    let answer = (_: LedgerLook) => {};
    const silence = new Promise<LedgerLook>((resolve) => {
      answer = resolve;
    });
    const { server, url, asked } = await startView(() => silence);
    const events = await openEvents(url);
    const first = (await events.next('sample')).data;
    const second = (await events.next('sample')).data;
    assert.deepEqual([first.db1.ok, first.db2.ok, second.db2.ok], [true, false, false]);
    assert(second.db2.ms > first.db2.ms, 'one can see for how long');
    assert.equal(asked.ledger, 1);
    answer(ledgerLook);
    while (!(await events.next('sample')).data.db2.ok);
    events.leave();
    await server.close();
  });

  it('forgets its history after ten minutes without a watcher', async () => {
    const { server, url, advance, gone } = await startView();
    const rowsSeen = async () => {
      const events = await openEvents(url);
      const { rows } = (await events.next('history')).data;
      await events.next('sample');
      const noticed = once(gone, 'one');
      events.leave();
      await noticed;
      return rows.length;
    };
    assert.equal(await rowsSeen(), 0);
    advance(9 * 60_000);
    assert((await rowsSeen()) >= 1);
    advance(10 * 60_000 + 1);
    assert.equal(await rowsSeen(), 0);
    await server.close();
  });

  /** Its number is that of the look it was made of. */
  async function secondSample(reader: Awaited<ReturnType<typeof openStream>>): Promise<string> {
    const pattern = /event: sample\n.*"claims_total":2,.*\n\n/;
    let text = '';
    while (!pattern.test(text)) text += await reader.next();
    return pattern.exec(text)?.[0] ?? '';
  }
});
