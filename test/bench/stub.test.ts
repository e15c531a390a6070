import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stubCall } from '../../bench/stub.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { startDatabases } from '../support/databases.ts';

test('a stubbed call never reaches the database, other calls do, and so does the call once the stub is off', async (t) => {
  const databases = await startDatabases({ db2: false });
  const database = createDatabase({
    url: databases.db1.url,
    max: 1,
    applicationName: 'test',
    log: createLog('error'),
  });
  t.after(async () => {
    await database.end();
    await databases.stop();
  });
  const length = () =>
    database.call<{ length: number }>('pg_catalog.length', { string: 'four' }).catch(() => 'refused');
  const upper = () =>
    database.call<{ upper: string }>('pg_catalog.upper', { string: 'x' }).catch(() => 'refused');
  // pg_catalog names no arguments: a call that reaches the database is refused.
  const goOn = stubCall('pg_catalog.length', ([text]) => [{ length: String(text).length }]);
  assert.deepEqual(await length(), [{ length: 4 }]);
  assert.equal(await upper(), 'refused');
  goOn();
  assert.equal(await length(), 'refused');
});
