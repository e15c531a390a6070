// Pools are made in SQL under any name that the table takes: every door, page and client must reach them by it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { createSluiceClient } from '#client/index.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  startTestServer,
} from './support.ts';

const POOL_IDS = [
  'a b/c',
  'ünïcode',
  '...',
  '%2e',
  '100%',
  '?x#y&z=+;,$',
  "it's (new)!*",
  'a:b@c',
  '\u{1F3AB}'.repeat(200),
];

describe('a pool made in SQL', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: RunningServer;
  let url = '';
  const admin = bearer(ADMIN_KEY);

  before(async () => {
    databases = await startDatabases();
    client = await openClient(databases.db1.url);
    server = await startTestServer(databases);
    url = server.url;
  });
  after(async () => {
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  for (const id of POOL_IDS) {
    const segment = encodeURIComponent(id);
    it(`as ${JSON.stringify(id).slice(0, 20)} is sold, shown and changed under its name`, async () => {
      await putOnSale(client, id, 3);
      const sold = await claim(url, segment, { user_id: 'ann', request_id: 'r1' });
      assert.deepEqual([sold.status, sold.json.pool_id], [201, id]);
      const { rows } = await client.query('select pool_id from public.claims where claim_id = $1', [
        sold.json.claim_id,
      ]);
      assert.deepEqual(rows, [{ pool_id: id }]);

      const shown = await ask(`${url}/v1/pools/${segment}`);
      assert.deepEqual([shown.status, shown.json.pool_id, shown.json.available], [200, id, 2]);
      const watched = await ask(`${url}/admin/pools/${segment}`, { headers: admin });
      assert.deepEqual([watched.status, watched.json.pool_id], [200, id]);
      const changed = await ask(`${url}/admin/pools/${segment}`, {
        method: 'POST',
        headers: admin,
        body: { add_slots: 2 },
      });
      assert.deepEqual([changed.status, changed.json.pool_id, changed.json.capacity], [200, id, 5]);

      for (const page of [`/drop/${segment}`, `/pools/${segment}`]) {
        const { status, headers } = await ask(url + page);
        assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'], page);
      }
    });

    it(`as ${JSON.stringify(id).slice(0, 20)} is reached by the typed client`, async () => {
      const sluice = createSluiceClient({ url });
      const sold = await sluice.claim({ pool: id, userId: 'bob' });
      assert.equal(sold.pool_id, id);
      assert.equal((await sluice.pool(id)).pool_id, id);
      const following = new AbortController();
      for await (const news of sluice.follow(id, { signal: following.signal })) {
        assert.equal(news.status, 'open');
        following.abort();
      }
    });
  }

  it('has one name and no other: what is spelled differently is another pool, or none', async () => {
    assertRefusal(await claim(url, encodeURIComponent('a b/C'), { user_id: 'ann' }), 404, 'unknown_pool');
    assertRefusal(await claim(url, 'a+b%2Fc', { user_id: 'ann' }), 404, 'not_found');
    assertRefusal(await claim(url, '%61%20b%2Fc', { user_id: 'ann' }), 404, 'not_found');
    assertRefusal(await claim(url, 'a%20b/c', { user_id: 'ann' }), 404, 'not_found');
  });

  it('is refused where no path could hold its name, and nothing is kept of it', async () => {
    for (const id of ['.', '..', '', 'a\n', '\u0085', 'x'.repeat(201)])
      await assert.rejects(putOnSale(client, id, 1), {
        code: '23514',
        message: /pool_id_is_not_dots_and_has_no_control_characters|has_1_to_200_characters/,
      });
    const { rows } = await client.query('select count(*)::int as pools from public.engine_config');
    assert.equal(rows[0].pools, POOL_IDS.length);
  });
});
