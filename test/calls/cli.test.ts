import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import type pg from 'pg';
import { command as calls } from '../../src/commands/calls.ts';
import { runCommand, UsageError } from '../../src/commands/grammar.ts';
import { StackError } from '../../src/failure.ts';
import { addDemoSite } from '../../src/stack/demo_setup.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { allowSecrets } from '../webhook/world.ts';
import { type CallServer, countCalls, SECRET, startCallServer } from './support.ts';

describe('sluice calls', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: CallServer;

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = await openClient(databases.db2.url);
    server = await startCallServer({ db2Url: databases.db2.url });
    const names = ['SITE_SECRET', 'NEW', 'OWN_SECRET', ...'ABCDEF'];
    await allowSecrets(client, names);
    for (const name of names) process.env[name] = SECRET;
    Object.assign(process.env, {
      DB2_URL: databases.db2.url,
      SLUICE_URL: server.url,
      USER: 'grace',
      OPS_SITE_ID: 'branch-7',
      OPS_SITE_SECRET: SECRET,
    });
  });
  after(async () => {
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  /** What the command printed, line by line, and its exit code. */
  async function run(...args: string[]): Promise<{ code: number; lines: string[] }> {
    const lines: string[] = [];
    const keep = (line: string) => void lines.push(line);
    const mocks = [mock.method(console, 'log', keep), mock.method(console, 'error', keep)];
    try {
      return { code: await runCommand('calls', calls, args), lines };
    } finally {
      for (const one of mocks) one.mock.restore();
    }
  }
  const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).lines.join('\n'));

  it('adds a site with the name of its secret, audited, and not twice', async () => {
    assert.deepEqual((await run('sites', 'list')).lines, ['No sites.']);
    const { sites } = await json(
      'sites',
      'add',
      'branch-7',
      '--secret-name',
      'SITE_SECRET',
      '--kind',
      'ring',
    );
    const { secret_names, require_signature, kinds, is_active } = sites[0];
    assert.deepEqual(
      [secret_names, require_signature, kinds, is_active],
      [['SITE_SECRET'], true, ['ring'], true],
    );
    await assert.rejects(run('sites', 'add', 'branch-7', '--unsigned'), StackError);
    const { rows } = await client.query(
      `select actor, action from audit.audit_logs where subject = 'call site branch-7'`,
    );
    assert.deepEqual(rows, [{ actor: 'owner (grace)', action: 'call_site_add' }]);
  });

  it('sends a sample that is recorded, and the same one again as a noop', async () => {
    const { code, lines } = await run('send', '--count', '3');
    assert.equal(code, 0);
    assert.match(lines[0] ?? '', /^200 {2}\{"status":"recorded"/);
    assert.deepEqual(lines.slice(1), Array(2).fill('200  {"status":"noop","reason":"idempotent_conflict"}'));
    assert.equal(await countCalls(client), 1);
  });

  it('says 1 where the sample is refused', async () => {
    assert.equal((await run('send', '--kind', 'fax')).code, 1);
    assert.equal((await run('send', '--secret', 'wrong')).code, 1);
    assert.equal(await countCalls(client), 1);
  });

  it('lists and shows what was recorded', async () => {
    const { calls: listed } = await json('list', '--site', 'branch-7', '--kind', 'ring');
    assert.equal(listed.length, 1);
    const shown = await json('show', listed[0].id);
    assert.deepEqual([shown.id, shown.payload.sample], [listed[0].id, true]);
    const unknown = await run('show', '00000000-0000-7000-8000-000000000000');
    assert.deepEqual([unknown.code, unknown.lines.length], [1, 1]);
    assert.deepEqual((await run('list', '--site', 'x')).lines, ['No calls.']);
    assert.match((await run('list')).lines[0] ?? '', /^ID +SITE +KIND +EVENT ID +OCCURRED AT +SIGNED\n/);
  });

  it('rotates secrets, and disables and enables a site', async () => {
    const rotated = await json('sites', 'rotate', 'branch-7', '--secret-name', 'NEW');
    assert.deepEqual(rotated.sites[0].secret_names, ['NEW', 'SITE_SECRET']);
    const ended = await json('sites', 'rotate', 'branch-7', '--secret-name', 'NEW', '--only');
    assert.deepEqual(ended.sites[0].secret_names, ['NEW']);
    const disabled = await json('sites', 'disable', 'branch-7', '--reason', 'moved');
    assert.equal(disabled.sites[0].is_active, false);
    const enabled = await json('sites', 'enable', 'branch-7');
    assert.equal(enabled.sites[0].is_active, true);
    await assert.rejects(run('sites', 'disable', 'unknown'), StackError);
    await assert.rejects(run('sites', 'rotate', 'unknown', '--secret-name', 'NEW'), StackError);
  });

  it('shows the demo site, which a second start leaves as it is', async () => {
    await addDemoSite(databases.db2.url, 'demo');
    await json('sites', 'rotate', 'demo', '--secret-name', 'OWN_SECRET', '--only');
    await addDemoSite(databases.db2.url, 'demo');
    const { sites } = await json('sites', 'list');
    const demo = sites.find((site: { site_id: string }) => site.site_id === 'demo');
    assert.deepEqual(demo.secret_names, ['OWN_SECRET']);
  });

  const MISUNDERSTOOD = [
    [],
    ['dance'],
    ['sites', 'add'],
    ['sites', 'add', 's'],
    ['sites', 'rotate', 's'],
    ['sites', 'paint', 's'],
    ['show'],
    ['show', '7'],
    ['list', '--limit', '0'],
    ['send', '--count', 'many'],
    ['send', '--payload', '{'],
  ];
  for (const args of MISUNDERSTOOD) {
    it(`does not understand: ${args.join(' ') || 'nothing'}`, () => assert.rejects(run(...args), UsageError));
  }

  it('says which rule a site breaks in a sentence, not by the name of a constraint', async () => {
    const hints = [
      [['sites', 'add', 'a site', '--unsigned'], /^The id of a site is 1 to 200 letters/],
      [['sites', 'add', 's', ...'ABCDEF'].flatMap(secretOption), /^A site has at most five secrets/],
    ] as const;
    for (const [args, hint] of hints) {
      const error = await run(...args).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof StackError);
      assert.equal(error.message, 'The request is not valid.');
      assert.match(error.hint, hint);
    }
  });

  it('refuses a secret where its name belongs, and does not repeat it', async () => {
    for (const action of ['add', 'rotate']) {
      const error = await run('sites', action, 'leaky', '--secret-name', 'hunter2-hunter2').catch(
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof UsageError);
      assert.match(error.message, /never the secret itself/);
      assert.doesNotMatch(error.message, /hunter2/);
    }
    await assert.rejects(
      client.query(`select calls.add_site('leaky', '{hunter2}', true, null, 'ann')`),
      /secrets_are_names/,
    );
  });

  it('prints one JSON object a request, with the answer as JSON', async () => {
    const { lines } = await run('send', '--secret', 'wrong', '--json');
    const printed = JSON.parse(lines[0] ?? '');
    assert.deepEqual([printed.status, printed.answer.error.code], [401, 'bad_signature']);
  });

  it('speaks of the database where it cannot be reached', async () => {
    const { DB2_URL } = process.env;
    process.env.DB2_URL = 'postgres://u:p@127.0.0.1:1/x';
    try {
      const error = await run('list').catch((thrown: unknown) => thrown);
      assert.ok(error instanceof StackError);
      assert.match(error.hint, /DB2_URL/);
    } finally {
      process.env.DB2_URL = DB2_URL;
    }
  });
});

/** A single letter is the name of a secret; other words stay what they are. */
function secretOption(word: string): string[] {
  return /^[A-Z]$/.test(word) ? ['--secret-name', word] : [word];
}
