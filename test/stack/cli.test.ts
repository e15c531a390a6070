import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { summarize } from '../../src/commands/dev_summary.ts';
import { copyExtensionFiles } from '../../src/migrate/extensions/extensions.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { startCluster } from '../../src/stack/postgres.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import type { Stack } from '../../src/stack/stack.ts';
import { PROJECT } from '../support/dev.ts';

const sluice = (args: string[], env: Record<string, string> = {}) => {
  const { DB1_URL, DB2_URL, ...rest } = process.env;
  return spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), ...args], {
    cwd: '/',
    env: { ...rest, ...env },
    encoding: 'utf8',
  });
};

describe('the command line', () => {
  test('--help names every command, and each has a page with an example', () => {
    const help = sluice(['--help']);
    assert.equal(help.status, 0);
    for (const command of ['dev', 'serve', 'migrate', 'reset']) {
      assert.match(help.stdout, new RegExp(`^ {2}${command} `, 'm'));
      const page = sluice([command, '--help']);
      assert.equal(page.status, 0);
      assert.match(page.stdout, new RegExp(`^sluice ${command}[^]*Examples?:`));
    }
  });

  test('--version is the version of the package', () => {
    assert.match(sluice(['--version']).stdout, /^\d+\.\d+\.\d+\n$/);
  });

  test('an unknown command and an unknown option end with exit code 2 and a hint', () => {
    for (const args of [['frobnicate'], ['constructor'], ['reset', '--hard'], ['migrate', 'db1']]) {
      const wrong = sluice(args);
      assert.equal(wrong.status, 2, args.join(' '));
      assert.match(wrong.stderr, /hint: /);
    }
  });

  test('an invalid port is refused by name', () => {
    const wrong = sluice(['dev'], { DB1_API_PORT: '5432l' });
    assert.equal(wrong.status, 1);
    assert.match(wrong.stderr, /DB1_API_PORT=5432l is not a port/);
  });

  test('a folder that is a file, and a level of the log that is none, are refused by name', () => {
    for (const command of ['dev', 'reset', 'status']) {
      const wrong = sluice([command], { SLUICE_DIR: join(PROJECT, 'package.json') });
      assert.equal(wrong.status, 1);
      assert.match(wrong.stderr, /^error: \S+package\.json is a file\nhint: set SLUICE_DIR to .*\n$/);
    }
    const urls = { DB1_URL: 'postgres://127.0.0.1:1/a', DB2_URL: 'postgres://127.0.0.1:1/b' };
    const wrong = sluice(['retention', 'list'], { ...urls, SLUICE_LOG: 'loud' });
    assert.equal(
      wrong.stderr,
      'error: SLUICE_LOG is "loud"\nhint: use one of debug, info, warn, error, silent\n',
    );
    assert.match(sluice(['retention', 'list'], { ...urls, SLUICE_LOG: '' }).stderr, /is it running/);
  });

  test('what `npm start` shows can be pasted where its folder is another', () => {
    const side = { gateway: { url: 'http://127.0.0.1:1' }, url: 'postgres://a:b@127.0.0.1:2/c' };
    const stack = { db1: side, db2: side, stripe: undefined } as unknown as Stack;
    const shown = (dir: string) => summarize(stack, 'http://127.0.0.1:4000', dir, 'one');
    const usual = shown(resolve('.sluice'));
    assert.match(usual, /^ {2}\. \.sluice\/env$/m);
    assert.match(usual, /`npx sluice dev stop db2` .* `npx sluice dev start db2`.*`npm run reset`/s);
    const other = shown("/tmp/ann's try");
    const word = String.raw`'/tmp/ann'\''s try`;
    assert.ok(other.includes(`\n  . ${word}/env'\n`), other);
    for (const command of [
      'npx sluice demo',
      'npx sluice dev stop db2',
      'npx sluice dev start db2',
      'npm run reset',
    ])
      assert.ok(other.includes(`\`SLUICE_DIR=${word}' ${command}\``), command);
  });

  test('migrate without both databases, or with one twice, says so', () => {
    assert.match(sluice(['migrate']).stderr, /DB1_URL and DB2_URL must both be set/);
    const same = { DB1_URL: 'postgres://localhost/a', DB2_URL: 'postgres://localhost/a' };
    assert.match(sluice(['migrate'], same).stderr, /same database/);
  });

  test('migrate prepares a Postgres without pg_cron and pg_net, and a second run changes nothing', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
    giveToServer(dir);
    copyExtensionFiles(join(dir, 'extensions', 'extension'), ['pgmq']);
    const cluster = await startCluster({ dir, password: 'test', extensionDir: join(dir, 'extensions') });
    try {
      const db2 = cluster.url.replace(/\/postgres$/, '/ledger');
      await withClient(cluster.url, (client) => client.query('create database ledger'));
      const env = { DB1_URL: cluster.url, DB2_URL: db2 };
      const first = sluice(['migrate'], env);
      assert.equal(first.status, 0, first.stderr);
      const files = ['db1', 'db2'].flatMap((name) =>
        readdirSync(join(PROJECT, name, 'supabase', 'migrations'))
          .sort()
          .map((file) => `${name}: applied ${file}\n`),
      );
      assert.equal(first.stdout, files.join(''));
      assert.equal(sluice(['migrate'], env).stdout, 'db1: up to date\ndb2: up to date\n');
      const seeded = sluice(['migrate', '--seed'], env);
      assert.match(seeded.stdout, /db1: seeded/);
    } finally {
      await cluster.stop('immediate');
      rmSync(dir, { recursive: true });
    }
  });
});
