import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import type pg from 'pg';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { prune, ROWS_AT_ONCE, startRetention } from '../../src/scheduler/retention.ts';
import { runHere } from '../cli/support.ts';
import { memoryLog } from '../core/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const EVENTS = 2.5 * ROWS_AT_ONCE;

describe('retention', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases();
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await db2?.end();
    await databases?.stop();
  });

  const open = (t: TestContext): Database => {
    const db = createDatabase({
      url: databases.db2.url,
      max: 1,
      applicationName: 'retention-test',
      log: memoryLog(),
    });
    t.after(() => db.end());
    return db;
  };
  const addOld = (prefix: string) =>
    db2.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, status, received_at, payload, raw_body)
       select md5('shop')::uuid, 'shop', $1 || n, 'success', now() - interval '91 days', '{"a": 1}', 'raw'
       from generate_series(1, $2::int) n`,
      [prefix, EVENTS],
    );
  const left = async (): Promise<number> =>
    (await db2.query('select count(*)::int as n from public.webhook_events where payload is not null'))
      .rows[0].n;

  it('removes what is old in parts, each committed by itself, and goes on where it was stopped', async (t) => {
    await addOld('stopped-');
    const db = open(t);
    const stopping = new AbortController();
    await prune(db, memoryLog(), stopping.signal, () => stopping.abort());
    assert.equal(await left(), EVENTS - ROWS_AT_ONCE);
    const parts: number[] = [];
    await prune(db, memoryLog(), undefined, ({ what, gone }) => {
      assert.equal(what, 'webhook_payloads');
      parts.push(gone);
    });
    assert.deepEqual(parts, [ROWS_AT_ONCE, EVENTS - 2 * ROWS_AT_ONCE]);
    assert.equal(await left(), 0);
    const { rows } = await db2.query(
      `select count(*)::int as n from public.webhook_events where event_id like 'stopped-%'`,
    );
    assert.equal(rows[0].n, EVENTS, 'their keys stay');
  });

  it('is done by one of several processes at a time, and passes by what a worker has', async (t) => {
    await addOld('shared-');
    await db2.query(`begin; select from public.webhook_events where event_id = 'shared-1' for update`);
    const [one, other, watcher] = [open(t), open(t), await openClient(databases.db2.url)];
    await Promise.all([prune(one, memoryLog()), prune(other, memoryLog())]);
    await Promise.all([prune(one, memoryLog()), prune(other, memoryLog())]);
    const { rows } = await watcher.query(
      'select event_id from public.webhook_events where payload is not null',
    );
    await watcher.end();
    assert.deepEqual(rows, [{ event_id: 'shared-1' }]);
    await db2.query('commit');
    await prune(one, memoryLog());
    assert.equal(await left(), 0);
  });

  it('goes on beside the workers, in every database', async (t) => {
    await addOld('worked-');
    const db1 = await openClient(databases.db1.url);
    t.after(() => db1.end());
    await db1.query(
      `insert into public.engine_metrics (captured_at, pool_id, available_slots, reserved_slots, consumed_slots, queue_depth)
       select now() - interval '31 days', 'old', 0, 0, 0, 0 from generate_series(1, 150)`,
    );
    const log = memoryLog();
    const retention = startRetention([databases.db1.url, databases.db2.url], log);
    const snapshots = async () =>
      (await db1.query('select count(*)::int as n from public.engine_metrics')).rows[0].n;
    while ((await left()) > 0 || (await snapshots()) > 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await retention.stop();
    assert.deepEqual(log.lines.filter(({ message }) => message === 'removed what is old').length, 2);
  });

  it('is shown and set by a command, in the database that has the rule', async () => {
    const env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, USER: 'root' };
    const run = (...words: string[]) => runHere(['retention', ...words], env);
    const { rules } = JSON.parse((await run('list', '--json')).stdout);
    assert.deepEqual(
      rules.map(({ what, keep_days }: { what: string; keep_days: number }) => [what, keep_days]),
      [
        ['archived_letters', 90],
        ['metrics', 30],
        ['cron_runs', 7],
        ['samples', 30],
        ['webhook_payloads', 90],
        ['side_effects', 90],
        ['calls', 90],
      ],
    );
    assert.match((await run('set', 'calls', '30', '--reason', 'policy')).stdout, /calls: kept for 30 days\./);
    assert.match((await run('set', 'calls', '30')).stdout, /as before/);
    assert.match((await run('set', 'calls', 'forever')).stdout, /kept forever/);
    const { rows } = await db2.query(
      `select actor, reason, details from audit.audit_logs where action = 'retention_change' order by id`,
    );
    assert.deepEqual(rows, [
      { actor: 'owner (root)', reason: 'policy', details: { before: 90, after: 30 } },
      { actor: 'owner (root)', reason: null, details: { before: 30, after: null } },
    ]);
    for (const words of [
      ['set', 'calls', '0'],
      ['set', 'calls', 'soon'],
      ['set', 'claims', '7'],
    ]) {
      const { code, stderr } = await run(...words);
      assert.notEqual(code, 0, words.join(' '));
      assert.match(stderr, /hint: /, words.join(' '));
    }
    const denied = await runHere(['retention', 'set', 'calls', '7'], {
      DB1_URL: databases.db1.authenticatorUrl,
      DB2_URL: databases.db2.authenticatorUrl,
    });
    assert.equal(denied.code, 1);
    assert.match(denied.stderr, /only the owner/);
  });
});
