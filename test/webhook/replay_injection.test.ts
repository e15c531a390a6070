import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { storeEvents, webhooksHere } from '../admin/webhook_support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';

/** What has broken out of a quoted string somewhere: of SQL, a shell, a format, a pattern, a line of a terminal. */
const CORPUS = [
  `' or '1'='1`,
  `'; update public.webhook_events set status = 'success'; --`,
  `'); drop table public.webhook_events; --`,
  `" or ""="`,
  '$$; select pg_sleep(10); $$',
  '$1',
  `\\'; --`,
  `E'\\\\x27'`,
  '/* */ or true --',
  '--',
  ';',
  '%',
  '_',
  '%s%n%d',
  '*',
  '?',
  '$(touch pwned)',
  '`touch pwned`',
  '$IFS&& touch pwned',
  '| touch pwned',
  'a b\tc',
  'line\nbreak\r\n',
  '\u001b[2J\u001b]0;title\u0007',
  '＇ or ＇1＇=＇1',
  'ʼ\u202e\u2028',
  '💥\u{10ffff}',
  'null',
  '{}',
  '{"a":1}',
  '../../etc/passwd',
  'NaN',
  '-1',
  '--yes',
  'x'.repeat(500),
];
/** Too long or with a character that Postgres has not: never a value. */
const IMPOSSIBLE = ['', 'nul\0character', 'x'.repeat(100_000)];
/** Options that take no free text at all. */
const STRICT_OPTIONS = ['--webhook-id', '--since', '--until', '--limit', '--status'];
const SCRIPT = join(PROJECT, 'tools', 'webhook_replay.sh');

interface Snapshot {
  events: Map<string, string>;
  audit: { reason: string | null; event_id: string; idempotency_key: string | null }[];
}

describe('replay, given text that wants to be more than a value,', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  const replay = (...args: string[]) => webhooksHere(databases.db2.url, ['replay', ...args]);

  before(async () => {
    databases = await startDatabases({ db1: false });
    db2 = await openClient(databases.db2.url);
    for (const text of CORPUS) await storeEvents(db2, [text], { provider: text });
    await storeEvents(db2, ['target'], { provider: 'plain' });
  });
  after(async () => {
    await db2?.end();
    await databases?.stop();
  });

  async function snapshot(): Promise<Snapshot> {
    const events = await db2.query(
      `select event_id, md5(to_jsonb(e)::text) as row from public.webhook_events e order by id`,
    );
    const audit = await db2.query(
      `select reason, details ->> 'event_id' as event_id, details ->> 'idempotency_key' as idempotency_key
       from audit.audit_logs where action <> 'rule_change' order by id`,
    );
    return { events: new Map(events.rows.map(({ event_id, row }) => [event_id, row])), audit: audit.rows };
  }

  /** Which events `work` changed, and the audit rows it wrote; everything is a dead letter again afterwards. */
  async function changesOf(work: () => Promise<unknown>) {
    const before = await snapshot();
    await work();
    const now = await snapshot();
    assert.equal(now.events.size, before.events.size);
    const changed = [...now.events].filter(([id, row]) => before.events.get(id) !== row).map(([id]) => id);
    await db2.query(
      `update public.webhook_events
       set status = 'dead_letter', attempts = 5, error = 'it broke', next_attempt_at = null, idempotency_key = null
       where event_id = any ($1)`,
      [changed],
    );
    return { changed, audit: now.audit.slice(before.audit.length) };
  }

  it('replays the one event that has this text as its id, or as its provider', async () => {
    for (const option of ['--event-id', '--provider']) {
      for (const text of CORPUS) {
        const { changed, audit } = await changesOf(() => replay(`${option}=${text}`, '--yes'));
        assert.deepEqual(changed, [text], option);
        assert.deepEqual(audit, [{ reason: null, event_id: text, idempotency_key: null }]);
      }
    }
  });

  it('keeps the text as reason and as idempotency key, letter by letter', async () => {
    for (const text of CORPUS) {
      const { changed, audit } = await changesOf(() => replay('--event-id=target', `--reason=${text}`));
      assert.deepEqual([changed, audit.map(({ reason }) => reason)], [['target'], [text]]);
    }
    for (const text of CORPUS.filter(({ length }) => length <= 200)) {
      const { changed, audit } = await changesOf(() =>
        replay('--event-id=target', `--idempotency-key=${text}`),
      );
      assert.deepEqual([changed, audit.map((row) => row.idempotency_key)], [['target'], [text]]);
    }
  });

  it('refuses the text where a uuid, a date, a number or a status belongs, and changes nothing', async () => {
    const calls = [...CORPUS, ...IMPOSSIBLE].flatMap((text) => [
      ...STRICT_OPTIONS.map((option) => [`${option}=${text}`, '--provider=plain', '--yes']),
      ['--yes', '--', text],
    ]);
    for (const option of ['--event-id', '--provider', '--reason', '--idempotency-key'])
      for (const text of IMPOSSIBLE)
        calls.push(['--webhook-id=01900000-0000-7000-8000-000000000001', `${option}=${text}`, '--yes']);
    const { changed, audit } = await changesOf(async () => {
      for (const args of calls)
        assert.equal((await replay(...args)).code, 2, JSON.stringify(args).slice(0, 200));
    });
    assert.deepEqual([changed, audit], [[], []]);
  });

  it('tells apart what a statement put together from text does not', async () => {
    const { changed } = await changesOf(() =>
      db2.query(`update public.webhook_events set status = 'pending' where event_id = '${CORPUS[0]}'`),
    );
    assert.equal(changed.length, CORPUS.length + 1, 'the control must show the attack at work');
  });

  it('gets from the script exactly the words that the script was given', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-script-'));
    t.after(() => rmSync(dir, { recursive: true }));
    // In the place of Node: says its words, each ended by what no word can hold.
    writeFileSync(join(dir, 'node'), `#!/bin/sh\nprintf '%s\\0' "$@"\n`, { mode: 0o755 });
    const words = CORPUS.flatMap((text) => [
      ...['--webhook-id', '--event-id', '--provider', '--since', '--until', '--limit', '--reason'].flatMap(
        (option) => [option, text],
      ),
      `--idempotency-key=${text}`,
    ]);
    const said = spawnSync('bash', [SCRIPT, ...words], {
      cwd: dir,
      encoding: 'utf8',
      env: { PATH: `${dir}:${process.env.PATH}` },
    });
    assert.equal(said.status, 0, said.stderr);
    assert.deepEqual(said.stdout.split('\0').slice(1, -1), ['webhooks', 'replay', ...words]);
    assert.ok(!existsSync(join(dir, 'pwned')));
  });

  it('replays through the script the event that was asked for and no other', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-script-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const env = { PATH: process.env.PATH ?? '', DATABASE_URL: databases.db2.url, USER: 'ada' };
    const text = '$(touch pwned)';
    const { changed, audit } = await changesOf(async () => {
      const { status, stdout, stderr } = spawnSync(
        SCRIPT,
        ['--event-id', text, '--reason', '`touch pwned`'],
        {
          cwd: dir,
          encoding: 'utf8',
          env,
        },
      );
      assert.equal(status, 0, stderr);
      assert.match(stdout, /replayed/);
    });
    assert.deepEqual(changed, [text]);
    assert.deepEqual(audit, [{ reason: '`touch pwned`', event_id: text, idempotency_key: null }]);
    assert.ok(!existsSync(join(dir, 'pwned')));
  });
});
