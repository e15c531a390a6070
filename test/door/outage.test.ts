import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ask, assertRefusal, claim, exchange, openClient, putOnSale, startTestServer } from './support.ts';

/** A fixed address for a database that comes back on another port. */
async function startProxy(target: number) {
  const server = createServer((inside) => {
    const outside = connect(proxy.target, '127.0.0.1');
    // Either end closing, in whatever way, closes the other: that is all a client can see of an outage.
    inside.on('error', () => outside.destroy()).on('close', () => outside.destroy());
    outside.on('error', () => inside.destroy()).on('close', () => inside.destroy());
    inside.pipe(outside).pipe(inside);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = {
    target,
    port: (server.address() as AddressInfo).port,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
  return proxy;
}

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
    await putOnSale(client, 'cut', 1_000);
    const server = await startTestServer(databases);
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    const buy = (buyer: number) =>
      claim(server.url, 'cut', { user_id: `u${buyer}`, request_id: `r${buyer}` }, {}, agent);
    const acknowledged: string[] = [];
    for (let round = 0; round < 3; round++) {
      const crowd = Promise.all(Array.from({ length: 100 }, (_, index) => buy(round * 100 + index)));
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice-claims'`,
      );
      for (const answer of await crowd) {
        if (answer.status === 201) acknowledged.push(answer.json.claim_id);
        else assertRefusal(answer, 503, 'database_unavailable');
      }
    }
    const later = await Promise.all(Array.from({ length: 300 }, (_, buyer) => buy(buyer)));
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
    const proxy = await startProxy(databases.db1.port);
    const db1 = { url: databases.db1.url.replace(`:${databases.db1.port}/`, `:${proxy.port}/`) };
    const server = await startTestServer({ db1, db2: databases.db2 });
    servers.push(server, proxy);
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r1' })).status, 201);

    await databases.db1.stop('immediate');
    const refused = await claim(server.url, 'down', { user_id: 'ann', request_id: 'r2' });
    assertRefusal(refused, 503, 'database_unavailable');
    assert.equal(refused.headers['retry-after'], '1');
    assertRefusal(await ask(`${server.url}/readyz`), 503, 'database_unavailable');
    assertRefusal(await ask(`${server.url}/v1/pools/down`), 503, 'database_unavailable');
    assert.equal((await ask(`${server.url}/healthz`)).status, 200);

    proxy.target = (await databases.db1.restart()).port;
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r1' })).status, 200);
    assert.equal((await claim(server.url, 'down', { user_id: 'ann', request_id: 'r2' })).status, 201);
    assert.equal((await ask(`${server.url}/readyz`)).status, 200);
  });
});
