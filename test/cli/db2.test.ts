import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openClient } from '../server/support.ts';
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

  it('say that migrations are missing, and what applies them', async (t) => {
    const databases = await startDatabases();
    t.after(() => databases.stop());
    const bare = async (url: string): Promise<string> => {
      const client = await openClient(url);
      await client.query('create database bare');
      await client.end();
      return url.replace(/\/[^/]*$/, '/bare');
    };
    const DB1_URL = await bare(databases.db1.url);
    const DB2_URL = await bare(databases.db2.url);
    const env = { SLUICE_DIR: '/nonexistent', DB1_URL, DB2_URL };
    const others = [
      ['operators', 'list'],
      ['retention', 'list'],
      ['audit', 'check'],
      ['webhooks', 'inbox', 'list'],
    ];
    for (const words of [...COMMANDS, ...others, ['users', 'erase', 'ann', '--yes']]) {
      const { code, stderr } = await runHere(words, env);
      assert.equal(code, 1, words.join(' '));
      assert.match(
        stderr,
        /^error: (DB1|DB2|a database) lacks .*\nhint: .*`sluice migrate`.*\n$/,
        words.join(' '),
      );
    }
    for (const words of [['migrate', '--plan'], ['doctor'], ['webhooks', 'list']]) {
      const { code, stderr } = await runHere(words, { ...env, SLUICE_OPERATOR_KEY: 'sluice_nobody' });
      assert.equal(code, 1, words.join(' '));
      assert.match(
        stderr,
        /^error: DB2 knows no operators: .*\nhint: unset SLUICE_OPERATOR_KEY.*`sluice migrate`\n$/,
      );
    }
  });

  it('pass on what our own functions advise, and name the variables of all databases that they ask', async (t) => {
    const databases = await startDatabases();
    t.after(() => databases.stop());
    const env = { SLUICE_DIR: '/nonexistent', DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
    const reserved = await runHere(['operators', 'add', 'admin', '--role', 'viewer'], env);
    assert.match(reserved.stderr, /^error: .*\nhint: a name is 1 to 100 characters on one line, not admin, /);
    const unknown = await runHere(['operators', 'revoke', 'eve', '--yes'], env);
    assert.equal(unknown.stderr, 'error: no operator is called eve\nhint: list shows them\n');
    for (const words of [
      ['retention', 'list'],
      ['users', 'export', 'ann'],
    ]) {
      const { stderr } = await runHere(words, { ...env, DB2_URL: NOWHERE });
      assert.match(stderr, /\nhint: is it running, and is DB1_URL, SLUICE_CELLS or DB2_URL its address\?\n$/);
    }
  });
});
