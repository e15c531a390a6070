import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startFleet } from '../fleet/support.ts';
import { ADMIN_KEY, ask, bearer, claim, startTestServer } from '../server/support.ts';

const headers = bearer(ADMIN_KEY);

test('several cells are searched, counted, paged and exported as one, and one that is away is named', async (t) => {
  const fleet = await startFleet(t);
  const server = await startTestServer({ db1: fleet.a, db2: fleet.db2 }, { cells: fleet.cells });
  t.after(() => server.stop());
  const get = (path: string) => ask(`${server.url}${path}`, { headers });
  const made: Record<string, string> = {};
  for (const cell of ['a', 'b']) {
    const body = { pool_id: `in_${cell}`, cell, slots: 20 };
    await ask(`${server.url}/admin/pools`, { method: 'POST', headers, body });
    for (let n = 0; n < 5; n++) {
      const { json } = await claim(server.url, `in_${cell}`, { user_id: 'ann', request_id: `${cell}${n}` });
      made[cell] = json.claim_id;
    }
  }
  const found = async (q: string) => {
    const { json } = await get(`/admin/search?q=${encodeURIComponent(q)}`);
    const rows = json.groups.flatMap(({ items }: { items: unknown[] }) => items) as {
      id: string;
      cell: string;
      kind: string;
    }[];
    return { away: json.away as string[], rows };
  };
  for (const cell of ['a', 'b']) {
    const { rows, away } = await found(made[cell] ?? '');
    assert.deepEqual([rows[0]?.id, rows[0]?.cell, away], [made[cell], cell, []]);
  }
  assert.equal((await found('ann')).rows.filter(({ kind }) => kind === 'user').length, 1);
  assert.deepEqual((await get('/admin/totals/claims?user_id=ann')).json, { total: 10, how: 'exact' });
  const pages = [1, 2, 3, 4].map((page) => get(`/admin/claims?user_id=ann&limit=3&page=${page}`));
  const ids = (await Promise.all(pages)).flatMap(({ json }) =>
    json.items.map(({ claim_id }: { claim_id: string }) => claim_id),
  );
  assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
  assert.equal(ids.length, 10);
  assert.equal((await get('/admin/export/claims?user_id=ann')).text.trimEnd().split('\r\n').length, 11);
  assert.equal((await get('/admin/export/dead-letters')).status, 200);
  assert.deepEqual((await get('/admin/totals/pools')).json, { total: 2, how: 'exact' });
  assert.match((await get('/admin/export/pools')).text, /\r\nin_a,.*\r\nin_b,/s);
  const second = await get('/admin/pools?limit=1&page=2');
  assert.deepEqual([second.json.items.length, second.json.items[0].pool_id], [1, 'in_b']);
  const log = await get('/admin/export/audit?action=pool_create&format=json');
  assert.deepEqual(log.json.map(({ cell }: { cell: string }) => cell).sort(), ['a', 'b']);

  await fleet.b.stop('immediate');
  for (;;) {
    const { away, rows } = await found(made.a ?? '');
    assert.equal(rows[0]?.id, made.a);
    if (away.includes('b')) break;
    await delay(50);
  }
  assert.deepEqual((await get('/admin/totals/claims?user_id=ann')).json, { total: 5, how: 'at_least' });
});
