import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the stand-in extensions', () => {
  let databases: TestDatabases;
  let client: pg.Client;

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = new pg.Client({ connectionString: databases.db2.url });
    await client.connect();
    for (const name of ['pg_cron', 'pg_net', 'pgmq'])
      await client.query(`create extension if not exists ${name}`);
  });
  after(async () => {
    await client.end();
    await databases.stop();
  });

  const one = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows[0];

  test('scheduling a name a second time changes the job and returns the same id', async () => {
    const first = await one(`select cron.schedule('nightly', '0 3 * * *', 'select 1') as id`);
    const second = await one(`select cron.schedule('nightly', '30 seconds', 'select 2') as id`);
    assert.equal(second.id, first.id);
    const job = await one(
      'select schedule, command, database, username, active from cron.job where jobid = $1',
      [first.id],
    );
    assert.deepEqual(job, {
      schedule: '30 seconds',
      command: 'select 2',
      database: 'postgres',
      username: 'postgres',
      active: true,
    });
  });

  test('a job that was unscheduled cannot be unscheduled again', async () => {
    await one(`select cron.schedule('once', '* * * * *', 'select 1')`);
    assert.equal((await one(`select cron.unschedule('once') as done`)).done, true);
    await assert.rejects(client.query(`select cron.unschedule('once')`), /could not find valid entry/);
  });

  test('a job without a name is unscheduled by its id and altered by named arguments', async () => {
    const { id } = await one(`select cron.schedule('*/5 8-18 * jan,mar mon-fri', 'select 1') as id`);
    await client.query('select cron.alter_job(job_id => $1, active => false)', [id]);
    const job = await one('select active, schedule from cron.job where jobid = $1', [id]);
    assert.deepEqual(job, { active: false, schedule: '*/5 8-18 * jan,mar mon-fri' });
    assert.equal((await one('select cron.unschedule($1::bigint) as done', [id])).done, true);
  });

  for (const schedule of [
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * * 13 *',
    '* * * * 8',
    '5-1 * * * *',
    '*/0 * * * *',
    '0 seconds',
    '60 seconds',
    'soon',
    '',
    ',',
  ]) {
    test(`the schedule "${schedule}" is refused with a hint`, async () => {
      await assert.rejects(
        client.query(`select cron.schedule('bad', $1, 'select 1')`, [schedule]),
        (error: pg.DatabaseError) => {
          assert.equal(error.code, '22023');
          assert.match(error.hint ?? '', /cron format/);
          return true;
        },
      );
    });
  }

  test('a posted request waits in the queue with its parameters in the address', async () => {
    const { id } = await one(
      `select net.http_post('http://localhost/hook?a=1', '{"n": 1}', '{"who": "jo & ä"}', timeout_milliseconds => 700) as id`,
    );
    const queued = await one('select * from net.http_request_queue where id = $1', [id]);
    assert.equal(queued.url, 'http://localhost/hook?a=1&who=jo%20%26%20%C3%A4');
    assert.equal(queued.method, 'POST');
    assert.equal(queued.timeout_milliseconds, 700);
    assert.deepEqual(queued.headers, { 'Content-Type': 'application/json' });
    assert.deepEqual(JSON.parse(queued.body.toString()), { n: 1 });
  });

  test('a post that is not JSON is refused', async () => {
    await assert.rejects(
      client.query(`select net.http_post('http://localhost', headers => '{"content-type": "text/plain"}')`),
      /must be "application\/json"/,
    );
  });

  test('only the owner may use the schemas cron and net', async () => {
    for (const role of ['anon', 'authenticated', 'service_role']) {
      const rights = await one(
        `select has_schema_privilege($1, 'cron', 'usage') as cron, has_schema_privilege($1, 'net', 'usage') as net,
          has_function_privilege($1, 'net.http_get(text, jsonb, jsonb, integer)', 'execute') as get`,
        [role],
      );
      assert.deepEqual(rights, { cron: false, net: false, get: false }, role);
    }
  });

  test('pgmq is the real extension', async () => {
    await client.query(`select pgmq.create('line')`);
    await client.query(`select pgmq.send('line', '{"a": 1}')`);
    assert.deepEqual((await one(`select message from pgmq.read('line', 30, 1)`)).message, { a: 1 });
  });
});
