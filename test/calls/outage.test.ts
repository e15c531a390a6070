import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startProxy } from '../bridge/proxy.ts';
import { assertRefusal, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../support/databases.ts';
import {
  addSites,
  type CallServer,
  callBody,
  countCalls,
  NOOP,
  post,
  signedRequest,
  startCallServer,
} from './support.ts';

describe('while the database is away', () => {
  let databases: TestDatabases;
  let db2: TestDatabase;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let server: CallServer;

  before(async () => {
    databases = await startDatabases({ db1: false });
    db2 = databases.db2;
    proxy = await startProxy(db2.url);
    const client = await openClient(db2.url);
    await addSites(client);
    await client.end();
    server = await startCallServer({ db2Url: proxy.url });
  });
  after(async () => {
    await server?.stop();
    await proxy?.close();
    await databases?.stop();
  });

  async function stored(): Promise<number> {
    const client = await openClient(db2.url);
    const count = await countCalls(client);
    await client.end();
    return count;
  }

  it('a request that got 503 and is sent again is stored once and answered 200', async () => {
    assert.equal((await post(server.url, signedRequest(callBody({ payload: { warm: true } })))).status, 200);
    const request = signedRequest(callBody({ payload: { outage: 1 } }));
    await db2.stop('immediate');
    for (let time = 0; time < 3; time++) {
      const refused = await post(server.url, request);
      assertRefusal(refused, 503, 'database_unavailable');
      assert.equal(refused.headers['retry-after'], '1');
    }
    db2 = await db2.restart();
    proxy.retarget(db2.url);
    const again = await post(server.url, request);
    assert.deepEqual([again.status, again.json.status], [200, 'recorded']);
    assert.deepEqual((await post(server.url, request)).json, NOOP);
    assert.equal(await stored(), 2);
  });

  it('a request whose answer was lost after the commit is a noop when it comes again', async () => {
    const before = await stored();
    const request = signedRequest(callBody({ payload: { lost: 'the-reply-is-cut' } }));
    const cut = proxy.cutReplyTo('the-reply-is-cut');
    const refused = await post(server.url, request);
    await cut;
    assertRefusal(refused, 503, 'database_unavailable');
    assert.equal(await stored(), before + 1);
    const again = await post(server.url, request);
    assert.deepEqual([again.status, again.json], [200, NOOP]);
    assert.equal(await stored(), before + 1);
  });
});
