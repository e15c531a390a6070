import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startDatabases } from '../support/databases.ts';
import { runHere } from './support.ts';

const COMMANDS = [
  ['calls', 'sites', 'list'],
  ['calls', 'list'],
  ['webhooks', 'list'],
  ['webhooks', 'handlers', 'list'],
];
const NOWHERE = 'postgres://absent@127.0.0.1:1/nothing';

describe('commands that ask DB2 directly', () => {
  it('find it by DB2_URL, else by DATABASE_URL, and say so where neither is set', async (t) => {
    const databases = await startDatabases({ db1: false });
    t.after(() => databases.stop());
    for (const words of COMMANDS) {
      const run = (env: Record<string, string>) => runHere(words, { SLUICE_DIR: '/nonexistent', ...env });
      const { url } = databases.db2;
      const by = [await run({ DATABASE_URL: url }), await run({ DB2_URL: url, DATABASE_URL: NOWHERE })];
      for (const { code, stderr } of by) assert.deepEqual([code, stderr], [0, ''], words.join(' '));
      const lost = await run({});
      assert.equal(lost.code, 1);
      assert.match(lost.stderr, /^error: DB2_URL is not set, and no stack runs here\nhint: /);
      const away = await run({ DATABASE_URL: NOWHERE });
      assert.equal(away.code, 1);
      assert.match(away.stderr, /hint: is it running, and is DB2_URL its address\?/);
      const missing = await run({ DATABASE_URL: url.replace(/\/[^/]*$/, '/nowhere') });
      assert.equal(missing.code, 1);
      assert.match(missing.stderr, /^error: DB2 says: database "nowhere" does not exist\n/);
    }
  });
});
