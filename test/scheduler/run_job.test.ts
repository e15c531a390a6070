import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const AT = '2026-11-15T10:30:00Z';

describe('cron.run_job of the stand-in', () => {
  let databases: TestDatabases;
  let client: pg.Client;

  before(async () => {
    databases = await startDatabases({ db2: false });
    client = await openClient(databases.db1.url);
    await client.query('delete from cron.job');
    await client.query('create table public.seen (what text)');
  });
  after(async () => {
    await client?.end();
    await databases?.stop();
  });

  async function run(command: string, at = AT) {
    const { rows } = await client.query(`select cron.schedule('* * * * *', $1) as id`, [command]);
    const status = await runAgain(rows[0].id, at);
    const details = await client.query(
      'select status, return_message, command, end_time >= start_time as in_order from cron.job_run_details where jobid = $1',
      [rows[0].id],
    );
    return { id: rows[0].id as string, status, details: details.rows };
  }
  const runAgain = async (id: string, at = AT, by = client): Promise<string | null> =>
    (await by.query('select cron.run_job($1, $2) as status', [id, at])).rows[0].status;

  it('runs the command once for a moment and writes it down', async () => {
    // Not qualified: the command has the search path of the role that scheduled it.
    const command = `insert into seen values ('once')`;
    const { id, status, details } = await run(command);
    assert.equal(status, 'succeeded');
    assert.deepEqual(details, [{ status: 'succeeded', return_message: '1 row', command, in_order: true }]);
    assert.equal(await runAgain(id), null, 'a second call for the same moment');
    assert.equal(await runAgain(id, '2026-11-15T10:29:00Z'), null, 'a moment that has passed');
    assert.equal(await runAgain(id, '2026-11-15T10:31:00Z'), 'succeeded');
    const { rows } = await client.query(`select count(*)::int as n from seen where what = 'once'`);
    assert.equal(rows[0].n, 2);
  });

  it('undoes what a failing command did, and keeps its error', async () => {
    const { id, status, details } = await run(`insert into seen values ('half'); select 1 / 0`);
    assert.equal(status, 'failed');
    assert.equal(details[0].status, 'failed');
    assert.match(details[0].return_message, /division by zero/);
    assert.equal((await client.query(`select from seen where what = 'half'`)).rowCount, 0);
    assert.equal(await runAgain(id), null, 'a failure counts as a run');
  });

  it('writes down a command that ran into the statement timeout', async () => {
    await client.query(`set statement_timeout = '100ms'`);
    const { status, details } = await run('select pg_sleep(30)');
    await client.query('reset statement_timeout');
    assert.equal(status, 'failed');
    assert.match(details[0].return_message, /statement timeout/);
  });

  it('runs as the user of the job, and comes back from it', async () => {
    await client.query('create role modest; grant insert on seen to modest');
    const { rows } = await client.query(
      `select cron.schedule_in_database('modest', '* * * * *', 'insert into public.seen select current_user', current_database(), 'modest') as id`,
    );
    assert.equal(await runAgain(rows[0].id), 'succeeded');
    assert.equal((await client.query(`select from seen where what = 'modest'`)).rowCount, 1);
    const refused = await client.query(
      `select cron.schedule_in_database('bold', '* * * * *', 'delete from public.seen', current_database(), 'modest') as id`,
    );
    assert.equal(await runAgain(refused.rows[0].id), 'failed');
    assert.equal((await client.query('select current_user as me')).rows[0].me, 'postgres');
  });

  it('does not run a job beside itself', async () => {
    const other = await openClient(databases.db1.url);
    try {
      await client.query('begin');
      const { id } = await run(`insert into seen values ('slow')`);
      assert.equal(await runAgain(id, '2026-11-15T10:31:00Z', other), null, 'it is not even visible yet');
      await client.query('commit');
      await client.query('begin');
      assert.equal(await runAgain(id, '2026-11-15T10:32:00Z'), 'succeeded');
      assert.equal(await runAgain(id, '2026-11-15T10:33:00Z', other), null, 'the first still runs');
      await client.query('commit');
      assert.equal(await runAgain(id, '2026-11-15T10:33:00Z', other), 'succeeded');
    } finally {
      await other.end();
    }
  });
});
