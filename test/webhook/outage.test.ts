import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { processOnce } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { startProxy, type Proxy as WireProxy } from '../bridge/proxy.ts';
import { ADMIN_KEY, assertRefusal, JWT_SECRET, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../support/databases.ts';
import { addEndpoint, paymentEvent, SECRETS, send } from './world.ts';

describe('an outage of DB2', () => {
  let databases: TestDatabases;
  let db2: TestDatabase;
  let proxy: WireProxy;
  let server: RunningServer;
  before(async () => {
    process.env.SLUICE_LOG ??= 'silent';
    databases = await startDatabases();
    db2 = databases.db2;
    const client = await openClient(db2.url);
    await addEndpoint(client, 'inline', 'stripe', 'inline');
    await addEndpoint(client, 'queued', 'stripe', 'queued');
    await client.end();
    proxy = await startProxy(databases.db2.url);
    server = await startServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: proxy.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => SECRETS[name],
    });
  });
  after(async () => {
    await server?.stop();
    await proxy?.close();
    await databases?.stop();
  });

  const post = (mode: string, id: string) =>
    send({ url: `${server.url}/webhooks/${mode}`, provider: 'stripe', body: paymentEvent(id) });
  const look = async (sql: string) => {
    const client = await openClient(db2.url);
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };

  it('is answered 503 with Retry-After, never 2xx, and what is sent again afterwards is taken once', async () => {
    for (const mode of ['inline', 'queued']) assert.equal((await post(mode, `evt_0_${mode}`)).status, 200);
    await db2.stop('immediate');
    for (const mode of ['inline', 'queued']) {
      for (let delivery = 0; delivery < 3; delivery++) {
        const answer = await post(mode, `evt_1_${mode}`);
        assertRefusal(answer, 503, 'database_unavailable');
        assert.equal(answer.headers['retry-after'], '1');
      }
    }
    db2 = await db2.restart();
    proxy.retarget(db2.url);
    for (const mode of ['inline', 'queued']) {
      // The first may still meet a connection of before.
      const deadline = Date.now() + 10_000;
      while ((await post(mode, `evt_1_${mode}`)).status !== 200) assert.ok(Date.now() < deadline);
    }
    assert.deepEqual(
      await look(`select event_id, status::text from public.webhook_events order by event_id`),
      [
        { event_id: 'evt_0_inline', status: 'success' },
        { event_id: 'evt_0_queued', status: 'pending' },
        { event_id: 'evt_1_inline', status: 'success' },
        { event_id: 'evt_1_queued', status: 'pending' },
      ],
    );
  });

  it('between the commit and its answer makes a retry find the event: taken once, and said so', async () => {
    const cut = proxy.cutReplyTo('evt_2');
    const first = await post('queued', 'evt_2');
    await cut;
    assertRefusal(first, 503, 'database_unavailable');
    const second = await post('queued', 'evt_2');
    assert.deepEqual([second.status, second.json.status], [200, 'duplicate']);
    assert.equal((await look(`select from public.webhook_events where event_id = 'evt_2'`)).length, 1);
  });

  it('is not a failure of the events: a worker without DB2 says so, and no attempt is counted', async () => {
    const options = { workers: 1, batchSize: 10, handlers: NO_HANDLERS, metrics: NO_METRICS };
    const run = (db2Url: string) =>
      processOnce({ ...options, db2Url, log: createLog('silent') }, new AbortController().signal);
    assert.deepEqual(await run('postgres://x:x@127.0.0.1:1/x'), { totals: {}, isPaused: true });
    const { totals, isPaused } = await run(proxy.url);
    assert.deepEqual([totals, isPaused], [{ success: 3 }, false]);
    const worked = await look(`select distinct attempts from public.webhook_events`);
    assert.deepEqual(worked, [{ attempts: 1 }]);
  });

  it('does not make a late mark count: after a takeover the first worker is refused', async () => {
    const client = await openClient(db2.url);
    try {
      await post('queued', 'evt_3');
      const lanes = 'array(select lane from webhook.event_lanes())';
      const slow = (await client.query(`select * from webhook.take_events(${lanes}, '{1}')`)).rows[0];
      await client.query(`update public.webhook_events set lease_until = now(), next_attempt_at = now()
                       where event_id = 'evt_3'`);
      const heir = (await client.query(`select * from webhook.take_suspect(${lanes})`)).rows[0];
      assert.equal(heir?.id, slow?.id);
      assert.equal(heir?.takeovers, 1);
      const finish = (lease: { id: string; lease_token: string }) =>
        client.query('select * from webhook.process_events(array[$1]::uuid[], array[$2]::uuid[])', [
          lease.id,
          lease.lease_token,
        ]);
      assert.equal((await finish(slow)).rows[0].outcome, 'lost_lease');
      assert.equal(
        (await client.query(`select from public.credit_ledger where event_id = 'evt_3'`)).rowCount,
        0,
      );
      assert.equal((await finish(heir)).rows[0].outcome, 'success');
      assert.equal((await finish(slow)).rows[0].outcome, 'lost_lease');
      assert.equal(
        (await client.query(`select from public.credit_ledger where event_id = 'evt_3'`)).rowCount,
        1,
      );
    } finally {
      await client.end();
    }
  });
});
