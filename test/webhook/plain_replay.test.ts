// The requirement's replay, `update webhook_events set status = 'pending', attempts = 0 …`, while two workers run.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { type Running, startWork } from './processes.ts';
import { effectsOf, openShop, process, record, take } from './sql_support.ts';

const EVENTS = Array.from({ length: 40 }, (_, n) => `evt-${n}`);
const PATIENCE_MS = 20_000;
const REPLAY = `
  with dl as (select id from webhook_events where status = 'dead_letter' order by received_at limit 100)
  update webhook_events set status = 'pending', attempts = 0, last_attempt_at = null, error = null
  from dl where webhook_events.id = dl.id`;

describe('a replay by plain SQL, with two workers', () => {
  let databases: TestDatabases;
  let session: Session;
  let workers: Running[] = [];

  const tally = async () =>
    Object.fromEntries(
      (
        await session.rows<{ status: string; count: number }>(
          'select status::text, count(*)::int from public.webhook_events group by 1',
        )
      ).map(({ status, count }) => [status, count]),
    );

  before(async () => {
    databases = await startDatabases();
    session = await openSession(databases.db2.url);
    const shop = await openShop(session);
    await record(session, shop, EVENTS, '{"raise": "SL030"}');
    await process(session, await take(session));
  });
  after(async () => {
    for (const worker of workers) await worker.stop();
    await session?.close();
    await databases?.stop();
  });

  it('lets every dead letter take its effect once', async () => {
    assert.deepEqual(await tally(), { dead_letter: EVENTS.length });
    const urls = { db1Url: databases.db1.url, db2Url: databases.db2.url };
    workers = await Promise.all([startWork(urls), startWork(urls)]);
    // What was wrong has been mended.
    await session.client.query(`update public.webhook_events set payload = '{}'`);
    assert.equal((await session.client.query(REPLAY)).rowCount, EVENTS.length);
    const deadlineMs = Date.now() + PATIENCE_MS;
    while ((await tally()).success !== EVENTS.length) {
      assert.ok(Date.now() < deadlineMs, JSON.stringify(await tally()));
      await delay(50);
    }
    for (const eventId of EVENTS) assert.equal(await effectsOf(session, eventId), 1, eventId);
  });
});
