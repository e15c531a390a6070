import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { claim, openClient } from '../server/support.ts';
import { type Dev, PROJECT, readEnv, startDev, stopDev } from '../support/dev.ts';
import { sluice } from './support.ts';

describe('the workers inside npm start', () => {
  let home: string;
  let dir: string;
  let dev: Dev;

  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-workers-')));
    // Root's server user must be able to get here.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    dev = startDev({ dir });
    await dev.ready;
  });
  after(async () => {
    await stopDev(dev, 'SIGINT');
    spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), 'reset'], {
      env: { ...process.env, SLUICE_DIR: dir },
    });
    rmSync(home, { recursive: true, force: true });
  });

  it('carry a claim to the ledger and run the cron jobs without further commands', async () => {
    const env = readEnv(dir);
    const db1 = await openClient(env.DB1_URL ?? '');
    const db2 = await openClient(env.DB2_URL ?? '');
    try {
      const { status, json } = await claim(env.SLUICE_URL ?? '', 'demo_concert_2026', { user_id: 'u' });
      assert.equal(status, 201);
      const tickets = () =>
        db2.query('select from public.confirmed_tickets where claim_id = $1', [json.claim_id]);
      while ((await tickets()).rowCount === 0) await sleep(10);
      const runs = () => db1.query(`select from cron.job_run_details where status = 'succeeded'`);
      while ((await runs()).rowCount === 0) await sleep(10);
      const failed = await db1.query(
        `select command, return_message from cron.job_run_details where status = 'failed'`,
      );
      assert.deepEqual(failed.rows, []);
    } finally {
      await Promise.all([db1.end(), db2.end()]);
    }
  });

  it('leave the dead letters and the comparison to commands that find the stack by themselves', async () => {
    assert.equal((await sluice(['dlq', 'list'], { SLUICE_DIR: dir }).ended).stdout, 'No dead letters.\n');
    const { code, stdout } = await sluice(['reconcile'], { SLUICE_DIR: dir }).ended;
    assert.equal(code, 0, stdout);
  });

  it('are left out with --no-workers: a claim waits until a worker is run by hand', async () => {
    await stopDev(dev, 'SIGINT');
    dev = startDev({ dir, args: ['--no-workers'] });
    await dev.ready;
    const { SLUICE_URL = '', DB1_URL = '', DB2_URL = '' } = readEnv(dir);
    const db1 = await openClient(DB1_URL);
    const db2 = await openClient(DB2_URL);
    try {
      assert.equal((await claim(SLUICE_URL, 'demo_concert_2026', { user_id: 'v' })).status, 201);
      for (const db of [db1, db2]) {
        const { rows } = await db.query(
          `select distinct application_name from pg_stat_activity
           where application_name in ('sluice-worker', 'sluice-webhook-worker', 'sluice-scheduler')`,
        );
        assert.deepEqual(rows, []);
      }
      const { stdout } = await sluice(['work', '--once', '--json'], { SLUICE_DIR: dir, SLUICE_LOG: 'warn' })
        .ended;
      assert.deepEqual(JSON.parse(stdout), { status: 'drained', total: 1, committed: 1 });
    } finally {
      await Promise.all([db1.end(), db2.end()]);
    }
  });
});
