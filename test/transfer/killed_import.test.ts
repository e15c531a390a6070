import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { withClient } from '../../src/migrate/sql.ts';
import { runHere } from '../cli/support.ts';
import { openSession } from '../support/sessions.ts';
import { sluice } from '../work/support.ts';
import { contentOf, startWorld, type World } from './support.ts';

const DEADLINE_MS = 20_000;

describe('an import that is killed', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    const { code, stderr } = await runHere(['export', world.file], world.old);
    assert.equal(code, 0, stderr);
  });
  after(() => world.stop());

  /** Waits until a query of this database answers true. */
  const until = async (url: string, question: string) => {
    const deadline = Date.now() + DEADLINE_MS;
    await withClient(url, async (client) => {
      while (!(await client.query(`select (${question}) as answer`)).rows[0].answer) {
        assert.ok(Date.now() < deadline, `never so: ${question}`);
        await delay(20);
      }
    });
  };

  test('before a commit leaves both databases as they were', async () => {
    const pair = await world.newPair();
    const empty = [await contentOf(pair.DB1_URL), await contentOf(pair.DB2_URL)];
    const holder = await openSession(pair.DB1_URL);
    await holder.client.query('begin; lock table public.claims in share row exclusive mode');
    const run = sluice(['import', world.file], pair);
    await until(
      pair.DB1_URL,
      `exists (select from pg_locks where not granted and relation = 'public.claims'::regclass)`,
    );
    run.child.kill('SIGKILL');
    await run.ended;
    await holder.close();
    await until(
      pair.DB2_URL,
      `not exists (select from pg_stat_activity where application_name = 'sluice stack' and state <> 'active')`,
    );
    assert.deepEqual([await contentOf(pair.DB1_URL), await contentOf(pair.DB2_URL)], empty);
  });

  test('between the two commits is told of by `migrate`, and a second run does the rest', async () => {
    const pair = await world.newPair();
    // DB1's commit waits for this lock, so that the kill falls between the two.
    await withClient(pair.DB1_URL, (db1) =>
      db1.query(`
        create schema app;
        create function app.wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return null; end $$;
        create constraint trigger wait after insert on audit.audit_logs
          deferrable initially deferred for each row execute function app.wait()`),
    );
    const holder = await openSession(pair.DB1_URL);
    await holder.client.query('select pg_advisory_lock(4711)');
    const empty = await contentOf(pair.DB1_URL);
    const run = sluice(['import', world.file], pair);
    await until(pair.DB2_URL, `exists (select from audit.audit_logs where action = 'import')`);
    await until(pair.DB1_URL, `exists (select from pg_locks where not granted and locktype = 'advisory')`);
    run.child.kill('SIGKILL');
    await run.ended;
    await withClient(pair.DB1_URL, (db1) =>
      db1.query(
        `select pg_terminate_backend(pid, 5000) from pg_locks where not granted and locktype = 'advisory'`,
      ),
    );
    await holder.close();
    assert.deepEqual(await contentOf(pair.DB1_URL), empty, 'DB1 holds half an import');

    const told = await runHere(['migrate'], pair);
    assert.equal(told.code, 1);
    assert.match(told.stderr, /an import has not finished[\s\S]*sluice import <file>/);

    const second = await runHere(['import', world.file, '--json'], pair);
    assert.equal(second.code, 0, second.stderr);
    assert.equal(JSON.parse(second.stdout).continued, true);
    const { stdout } = await runHere(['reconcile'], pair);
    assert.match(stdout, /No differences/);
    assert.equal((await runHere(['migrate'], pair)).code, 0);
    const third = await runHere(['import', world.file], pair);
    assert.match(third.stderr, /already imported/);
  });
});
