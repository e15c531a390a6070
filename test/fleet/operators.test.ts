// The operators stand in one cell, and all programs find the same one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/metrics.ts';
import { startMetricsServer } from '../../src/server/metrics_server.ts';
import { runHere } from '../cli/support.ts';
import { memoryLog } from '../core/support.ts';
import { ADMIN_KEY, ask, bearer, startTestServer } from '../server/support.ts';
import { query, startFleet } from './support.ts';

test('operators stand in the cell with the lowest number, wherever a list names it', async (t) => {
  const fleet = await startFleet(t);
  const turned = fleet.cells.toReversed();
  const env = (cells: readonly { name: string; url: string }[]) => ({
    SLUICE_CELLS: cells.map(({ name, url }) => `${name}=${url}`).join(','),
    DB2_URL: fleet.db2.url,
  });
  const add = async (name: string, cells: readonly { name: string; url: string }[]) => {
    const added = await runHere(['operators', 'add', name, '--role', 'admin', '--json'], env(cells));
    assert.equal(added.code, 0, added.stderr);
    return JSON.parse(added.stdout).key as string;
  };
  const keys = [await add('zoe', fleet.cells), await add('ann', turned)];
  const names = async (url: string) =>
    (await query(url, 'select name from public.known_operators() order by name')).map(({ name }) => name);
  assert.deepEqual([await names(fleet.a.url), await names(fleet.b.url)], [['ann', 'zoe'], []]);

  const server = await startTestServer({ db1: fleet.a, db2: fleet.db2 }, { cells: turned });
  const workers = await startMetricsServer({
    port: 0,
    db1Url: '',
    cells: turned,
    db2Url: fleet.db2.url,
    adminKey: ADMIN_KEY,
    metrics: createMetrics(),
    log: memoryLog(),
  });
  try {
    for (const key of keys) {
      const how = { headers: bearer(key) };
      assert.equal((await ask(`${server.url}/admin/pools`, how)).status, 200);
      assert.equal((await ask(`http://127.0.0.1:${workers.port}/metrics`, how)).status, 200);
      const command = await runHere(['users', 'export', 'bob'], { ...env(turned), SLUICE_OPERATOR_KEY: key });
      assert.equal(command.code, 0, command.stderr);
    }
  } finally {
    await workers.stop();
    await server.stop();
  }
  // The server has copied them to DB2, once at least.
  assert.deepEqual(await names(fleet.db2.url), ['ann', 'zoe']);
});
