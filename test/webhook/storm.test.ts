import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { type Answer, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { type Running, startServe, startWork, type Urls } from './processes.ts';
import { addEndpoint, paymentEvent, send } from './world.ts';

const DELIVERIES = 1_000;
const SOCKETS_PER_SERVER = 250;

describe('the same event 1,000 times in parallel through two server processes', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  let urls: Urls;
  let servers: Running[] = [];
  let agents: Agent[] = [];
  before(async () => {
    databases = await startDatabases();
    db2 = await openClient(databases.db2.url);
    urls = { db1Url: databases.db1.url, db2Url: databases.db2.url };
    await addEndpoint(db2, 'inline', 'stripe', 'inline');
    await addEndpoint(db2, 'queued', 'stripe', 'queued');
    servers = await Promise.all([startServe(urls), startServe(urls)]);
    agents = servers.map(() => new Agent({ keepAlive: true, maxSockets: SOCKETS_PER_SERVER }));
  });
  after(async () => {
    for (const agent of agents) agent.destroy();
    await Promise.all(servers.map((server) => server.stop()));
    await db2?.end();
    await databases?.stop();
  });

  const storm = (endpoint: string, body: string): Promise<Answer[]> =>
    Promise.all(
      Array.from({ length: DELIVERIES }, (_, index) => {
        const at = index % servers.length;
        const agent = agents[at];
        const url = `${servers[at]?.url}/webhooks/${endpoint}`;
        return send({ url, provider: 'stripe', body, ...(agent && { agent }) });
      }),
    );
  const count = async (sql: string, value: string): Promise<number> =>
    (await db2.query(`select count(*)::int as n from ${sql}`, [value])).rows[0].n;

  /** How many answers of each kind: "200 processed" and the like. */
  function tally(answers: readonly Answer[]): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status, json } of answers) {
      const word = `${status} ${json?.status ?? json?.error?.code}`;
      counts[word] = (counts[word] ?? 0) + 1;
    }
    return counts;
  }

  it('inline: one effect, and every answer is 2xx', async () => {
    const body = paymentEvent('evt_storm_inline', { metadata: { user_id: 'storm inline' } });
    const { '200 duplicate': duplicates, ...others } = tally(await storm('inline', body));
    assert.equal(duplicates, DELIVERIES - 1);
    // The delivery that recorded the event finds it locked when a duplicate at the other server processes it first.
    const [answer] = Object.keys(others);
    assert.ok(answer === '200 processed' || answer === '200 recorded', `the first answer is ${answer}`);
    assert.equal(await count('public.credit_ledger where user_id = $1', 'storm inline'), 1);
    assert.equal(await count(`public.webhook_events where event_id = $1`, 'evt_storm_inline'), 1);
  });

  it('queued: one effect once a worker comes, and every answer is 2xx', async () => {
    const body = paymentEvent('evt_storm_queued', { metadata: { user_id: 'storm queued' } });
    const worker = await startWork(urls);
    try {
      assert.deepEqual(tally(await storm('queued', body)), { '200 recorded': 1, '200 duplicate': 999 });
      const deadline = Date.now() + 10_000;
      const isDone = `public.webhook_events where event_id = $1 and status = 'success'`;
      while ((await count(isDone, 'evt_storm_queued')) === 0) assert.ok(Date.now() < deadline);
    } finally {
      assert.equal(await worker.stop(), 0);
    }
    assert.equal(await count('public.credit_ledger where user_id = $1', 'storm queued'), 1);
    assert.equal(await count(`public.webhook_events where event_id = $1`, 'evt_storm_queued'), 1);
  });
});
