// What is remembered of several cells: a pool is in one of them, and each numbers its own lanes.

import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { SampleHistory } from '#core/console/samples.ts';
import { startFleet } from '../fleet/support.ts';
import { ADMIN_KEY, ask, bearer, claim, startTestServer } from '../server/support.ts';

const headers = bearer(ADMIN_KEY);

test('a pool and a lane of a cell have their own numbers, whatever other cells have', async (t) => {
  const fleet = await startFleet(t);
  const server = await startTestServer({ db1: fleet.a, db2: fleet.db2 }, { cells: fleet.cells });
  t.after(() => server.stop());
  const claims = { a: 1, b: 2 };
  for (const [cell, count] of Object.entries(claims)) {
    const body = { pool_id: `in_${cell}`, cell, slots: 10 };
    assert.equal((await ask(`${server.url}/admin/pools`, { method: 'POST', headers, body })).status, 201);
    for (let n = 0; n < count; n++)
      assert.equal((await claim(server.url, `in_${cell}`, { user_id: `u${n}` })).status, 201);
  }
  /** The last row of a part; an answer by its range is kept for some seconds, one by its beginning is not. */
  const last = async (of: string): Promise<readonly unknown[]> => {
    const query = new URLSearchParams({ from: new Date(Date.now() - 600_000).toISOString(), of });
    const { status, json } = await ask(`${server.url}/admin/samples?${query}`, { headers });
    assert.equal(status, 200);
    return (json as SampleHistory).part?.rows.at(-1)?.slice(1) ?? [];
  };
  for (const [cell, count] of Object.entries(claims)) {
    while ((await last(`pool in_${cell}`))[0] !== 10 - count) await pause(100);
    while ((await last(`cell ${cell} lane 1`))[0] !== count) await pause(100);
  }
  const { json } = await ask(`${server.url}/admin/samples?range=15m`, { headers });
  const { parts } = json as SampleHistory;
  assert.deepEqual(
    parts.filter((part) => part.includes('lane')),
    ['cell a lane 1', 'cell b lane 1'],
  );
  assert.equal((await last('lane 1'))[0], null);
});
