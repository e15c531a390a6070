import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { startProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ask, assertRefusal, claim, exchange, openClient, putOnSale, startTestServer } from './support.ts';

const ROUNDS_MIN = 3;
const ROUNDS_MAX = 30;

describe('an outage', () => {
  let databases: TestDatabases;
  const servers: { stop(): Promise<void> }[] = [];

  before(async () => {
    databases = await startDatabases();
  });
  after(async () => {
    // Also after a failed assertion: a server left behind would keep the test from ending.
    for (const server of servers) await server.stop();
    await databases?.stop();
  });

  it('of a claiming connection under load loses no acknowledged claim, and the server goes on by itself', async () => {
    const client = await openClient(databases.db1.url);
    await putOnSale(client, 'cut', ROUNDS_MAX * 100);
    const server = await startTestServer(databases);
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    const buy = (buyer: number) =>
      claim(server.url, 'cut', { user_id: `u${buyer}`, request_id: `r${buyer}` }, {}, agent);
    const acknowledged: string[] = [];
    let refused = 0;
    let round = 0;
    // A cut between two batches goes unnoticed. At least one cut has to be noticed.
    for (; round < ROUNDS_MIN || (refused === 0 && round < ROUNDS_MAX); round++) {
      const buyers = Array.from({ length: 100 }, (_, index) => buy(round * 100 + index));
      await Promise.race(buyers);
      const { rows } = await client.query(
        `select pg_terminate_backend(pid) as is_cut from pg_stat_activity where application_name = 'sluice-claims'`,
      );
      assert.ok(
        rows.some(({ is_cut }) => is_cut),
        'the connection was there to be cut',
      );
      for (const answer of await Promise.all(buyers)) {
        if (answer.status === 201) acknowledged.push(answer.json.claim_id);
        else {
          refused++;
          assertRefusal(answer, 503, 'database_unavailable');
        }
      }
    }
    assert.ok(refused > 0, `no buyer noticed any of ${round} cuts`);
    const later = await Promise.all(Array.from({ length: round * 100 }, (_, buyer) => buy(buyer)));
    for (const answer of later) assert.ok(answer.status === 200 || answer.status === 201, answer.text);
    const { rows } = await client.query('select claim_id from public.claims where claim_id = any($1)', [
      acknowledged,
    ]);
    assert.equal(rows.length, acknowledged.length);
    agent.destroy();
    await server.stop();
    await client.end();
  });

  it('by kill -9 of the claiming backend under load leaves the server alive, and selling goes on by itself', async () => {
    const client = await openClient(databases.db1.url);
    await putOnSale(client, 'killed', 2_000);
    const server = await startTestServer(databases);
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const buy = (buyer: number) =>
      claim(server.url, 'killed', { user_id: `u${buyer}`, request_id: `r${buyer}` }, {}, agent);
    client.on('error', () => undefined);
    for (let round = 0; round < 3; round++) {
      const watcher = await openClient(databases.db1.url);
      watcher.on('error', () => undefined);
      assert.equal((await buy(round * 1_000)).status === 503, false);
      const { rows } = await watcher.query(
        `select pid from pg_stat_activity where application_name = 'sluice-claims'`,
      );
      const crowd = Promise.all(Array.from({ length: 200 }, (_, index) => buy(round * 1_000 + index)));
      process.kill(rows[0].pid, 'SIGKILL');
      for (const answer of await crowd) {
        if (answer.status !== 201 && answer.status !== 200)
          assertRefusal(answer, 503, 'database_unavailable');
      }
      await watcher.end().catch(() => undefined);
      while ((await buy(round * 1_000 + 500)).status === 503);
    }
    const again = await openClient(databases.db1.url);
    const { rows } = await again.query(
      `select count(*)::int as slots, count(distinct slot_id)::int as distinct_slots from public.claims where pool_id = 'killed'`,
    );
    assert.equal(rows[0].slots, rows[0].distinct_slots);
    assert.equal((await ask(`${server.url}/readyz`)).status, 200);
    agent.destroy();
    await server.stop();
    await again.end();
  });

  it('on purpose answers every claim that was accepted, and leaves no connection behind', async () => {
    const client = await openClient(databases.db1.url);
    await putOnSale(client, 'stop', 500);
    const server = await startTestServer(databases);
    const agent = new Agent({ keepAlive: true });
    // Every connection has proven to be accepted before the stop, so none is lost on the doorstep.
    await Promise.all(Array.from({ length: 50 }, () => ask(`${server.url}/healthz`, { agent })));
    const crowd = Array.from({ length: 50 }, (_, buyer) =>
      claim(server.url, 'stop', { user_id: `u${buyer}` }, {}, agent),
    );
    const first = await Promise.race(crowd);
    assert.equal(first.status, 201);
    await server.stop();
    const answers = await Promise.all(crowd);
    const acknowledged = answers.filter((answer) => answer.status === 201).length;
    for (const answer of answers) if (answer.status !== 201) assertRefusal(answer, 503, 'shutting_down');
    const { rows } = await client.query(
      `select (select count(*)::int from public.claims where pool_id = 'stop') as claims,
         (select count(*)::int from pg_stat_activity where application_name like 'sluice-%') as connections`,
    );
    assert.deepEqual(rows, [{ claims: acknowledged, connections: 0 }]);
    await assert.rejects(
      exchange(server.port, () => {}),
      { code: 'ECONNREFUSED' },
    );
    agent.destroy();
    await client.end();
  });

  it('of the database is answered with 503 and Retry-After, and over when the database is back', async () => {
    const client = await openClient(databases.db1.url);
    await putOnSale(client, 'down', 10);
    await client.end();
    let { port } = databases.db1;
    // A fixed address for a database that comes back on another port.
    const proxy = await startProxy(() => port, createRandom(0));
    const db1 = { url: databases.db1.url.replace(`:${databases.db1.port}/`, `:${proxy.port}/`) };
    const server = await startTestServer({ db1, db2: databases.db2 });
    servers.push(server, { stop: proxy.close });
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r1' })).status, 201);

    await databases.db1.stop('immediate');
    const refused = await claim(server.url, 'down', { user_id: 'ann', request_id: 'r2' });
    assertRefusal(refused, 503, 'database_unavailable');
    assert.equal(refused.headers['retry-after'], '1');
    assertRefusal(await ask(`${server.url}/readyz`), 503, 'database_unavailable');
    assertRefusal(await ask(`${server.url}/v1/pools/down`), 503, 'database_unavailable');
    assert.equal((await ask(`${server.url}/healthz`)).status, 200);

    ({ port } = await databases.db1.restart());
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r1' })).status, 200);
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r2' })).status, 201);
    assert.equal((await ask(`${server.url}/readyz`)).status, 200);
  });
});
