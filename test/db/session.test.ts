import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { openClient } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';

test('a session of Sluice compiles no plan, on a server that would', async (t) => {
  const databases = await startDatabases({ settings: { jit: 'on' } });
  t.after(() => databases.stop());
  const other = await openClient(databases.db1.url);
  await other.query(
    `create function public.probe() returns text language sql as $$ select current_setting('jit') $$`,
  );
  const { rows } = await other.query('select public.probe() as jit');
  await other.end();
  assert.equal(rows[0].jit, 'on', 'another client of the same server');
  const database = createDatabase({
    ...{ url: databases.db1.url, max: 1, applicationName: 'test', log: createLog('silent') },
  });
  t.after(() => database.end());
  const [own] = await database.call<{ probe: string }>('public.probe', {});
  assert.equal(own?.probe, 'off');
});
