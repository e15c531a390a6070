import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
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
import { openEvents } from './support.ts';

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
    const first = (await events.next('sample')).data;
    assert.deepEqual([first.queue_depth, first.ledger_total, first.db1.ok, first.db2.ok], [0, 0, true, true]);
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(server.url, 'gig', { user_id: `u${index}` })),
    );
    let sample = first;
    while (sample.queue_depth < 20) sample = (await events.next('sample')).data;
    assert.equal(sample.claims_total - first.claims_total, 20);
    assert.deepEqual(sample.pools, [
      { pool_id: 'gig', capacity: 50, available: 30, reserved: 20, consumed: 0, waiting: 20 },
    ]);
    events.leave();
  });

  it('gives a new watcher the newest sample at once, and all the same ones after that', async () => {
    const first = await watch();
    const known = (await first.next('sample')).data;
    const second = await watch();
    assert((await second.next('sample')).data.at >= known.at);
    const [one, other] = await Promise.all([first.next('sample'), second.next('sample')]);
    assert.deepEqual(one, other);
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
    for (const { away_since } of [sample.db1, sample.db2]) assert(away_since <= sample.at);
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
