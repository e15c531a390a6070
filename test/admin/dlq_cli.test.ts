import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { formatTable } from '../../src/commands/table.ts';
import { ADMIN_KEY, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { sluice } from '../work/support.ts';
import { auditCount, bury, finishEnds, withoutTombstones } from './support.ts';

describe('sluice dlq', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let env: Record<string, string>;
  const dlq = (...args: string[]) => sluice(['dlq', ...args], env).ended;

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 50);
    env = { SLUICE_URL: server.url, SLUICE_ADMIN_KEY: ADMIN_KEY };
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  it('lists as a table without colour, and as JSON', async () => {
    assert.equal((await dlq('list')).stdout, 'No dead letters.\n');
    const [id] = await bury(db1, 'p', 1, 'malformed: user_id');
    const { code, stdout } = await dlq('list', '--pool', 'p');
    assert.equal(code, 0);
    const [header, row, ...rest] = stdout.trimEnd().split('\n');
    assert.match(header ?? '', /^ID +POOL +USER +REASON +DEAD SINCE +CLAIM$/);
    assert.match(row ?? '', new RegExp(`^${id} +p +user 1 +malformed: user_id +2\\S+Z +dead_letter$`));
    assert.deepEqual(rest, []);
    const json = JSON.parse((await dlq('list', '--json', '--reason', 'malformed')).stdout);
    assert.deepEqual(
      json.messages.map((m: { msg_id: number }) => m.msg_id),
      [id],
    );
    assert.equal((await dlq('list', '--older-than', '1h')).stdout, 'No dead letters.\n');
    const shown = await dlq('show', String(id), '424242');
    assert.equal(shown.code, 1);
    assert.equal(JSON.parse(shown.stdout).msg_id, id);
    assert.match(shown.stderr, /The dead letter 424242 does not exist/);
  });

  it('discards what a filter finds, names who and why, and says 1 the second time', async () => {
    const [id] = JSON.parse((await dlq('list', '--json')).stdout).messages.map(
      (m: { msg_id: number }) => m.msg_id,
    );
    const dry = await dlq('discard', '--reason', 'malformed', '--dry-run');
    assert.deepEqual([dry.code, dry.stdout], [0, `ID  OUTCOME\n${id}   would_discard\n`]);
    for (const which of [[String(id)], ['--pool', 'p']]) {
      const refused = await dlq('discard', ...which);
      assert.deepEqual([refused.code, refused.stdout], [2, '']);
      assert.match(refused.stderr, /no terminal to ask at: discard 1 dead letter\? Add --yes/);
    }
    await withoutTombstones(databases.db2.url, async () => {
      const waiting = await dlq('discard', '--pool', 'p', '--reason-text', 'a test', '--yes');
      assert.deepEqual([waiting.code, waiting.stdout], [0, `ID  OUTCOME\n${id}   ending\n`]);
      assert.match(waiting.stderr, /^1 still ending: /);
      assert.match((await dlq('list')).stdout, / ending\n$/);
    });
    const again = dlq('discard', String(id), '--json', '--yes');
    await finishEnds(db1);
    const outcomes = JSON.parse((await again).stdout).results.map((row: { outcome: string }) => row.outcome);
    assert.ok(['discarded', 'not_found'].includes(outcomes.join()), outcomes.join());
    const { rows } = await db1.query(
      'select actor, reason from audit.audit_logs where reason is not null order by id desc limit 1',
    );
    assert.deepEqual(rows, [{ actor: 'admin', reason: 'a test' }]);
    const gone = await dlq('discard', String(id), '--yes');
    assert.deepEqual([gone.code, gone.stdout], [1, `ID  OUTCOME\n${id}   not_found\n`]);
    const [sold] = await bury(db1, 'p', 1);
    await db1.query(`select * from public.discard_dead_letters(array[$1::bigint], 'ada')`, [sold]);
    const late = dlq('discard', String(sold), '--yes');
    await db1.query(
      `select public.finish_ends(array_agg(claim_id), array_agg('ticket'::text)) from public.take_ends(10, 10)`,
    );
    assert.equal(
      (await late).code,
      1,
      'the ledger had its ticket, or the letter was gone before it was asked',
    );
  });

  it('replays, with the address and the key from what npm start left', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
    try {
      writeFileSync(join(dir, 'env'), `SLUICE_URL=${server.url}\nSLUICE_ADMIN_KEY=${ADMIN_KEY}\n`);
      const ids = await bury(db1, 'p', 2);
      const { code, stdout, stderr } = await sluice(['dlq', 'replay', ...ids.map(String), '--yes'], {
        SLUICE_DIR: dir,
        USER: 'ada',
      }).ended;
      assert.equal(code, 0, stderr);
      assert.equal(stdout, `ID  OUTCOME\n${ids.map((id) => `${id}   replayed\n`).join('')}`);
      assert.equal(await auditCount(db1, 'dead_letter_replay'), 2);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('says 2 to what it does not understand', async () => {
    const calls = [
      [],
      ['burn'],
      ['show'],
      ['list', '7'],
      ['replay'],
      ['discard', '--limit', '5'],
      ['replay', 'x'],
      ['replay', '0'],
      ['list', '--limit', '0'],
      ['list', '--limit', '1001'],
      ['list', '--older-than', 'soon'],
      ['list', '--colour'],
    ];
    const ends = await Promise.all(calls.map((args) => dlq(...args)));
    for (const [index, { code, stderr }] of ends.entries()) {
      assert.equal(code, 2, `${calls[index]}: ${stderr}`);
      assert.match(stderr, /hint: see `sluice dlq( \w+)? --help`/);
    }
  });

  it('says what to mend when the key is wrong, no server answers, or nothing is set', async () => {
    const wrong = await sluice(['dlq', 'list'], { ...env, SLUICE_ADMIN_KEY: 'wrong' }).ended;
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^error: the server refused the key\nhint: set SLUICE_OPERATOR_KEY /);
    const unanswered = await sluice(['dlq', 'list'], { ...env, SLUICE_URL: 'http://127.0.0.1:1' }).ended;
    assert.match(unanswered.stderr, /^error: no server answers at /);
    const unset = await sluice(['dlq', 'list'], { SLUICE_DIR: '/nonexistent' }).ended;
    assert.match(unset.stderr, /^error: SLUICE_URL and SLUICE_OPERATOR_KEY are not set/);
  });
});

describe('formatTable', () => {
  it('cuts the widest column where the terminal ends', () => {
    const lines = formatTable(['ID', 'REASON'], [['1', 'x'.repeat(100)]], 30).split('\n');
    assert.equal(lines[1], `1   ${'x'.repeat(25)}…`);
    assert.ok(lines.every((line) => line.length <= 30));
  });

  it('lets no control character through', () => {
    assert.equal(formatTable(['A'], [['red\u001b[31m\nline\u202e']], 80), 'A\nred [31m line');
  });
});
