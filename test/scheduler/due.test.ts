import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

// 15 November 2026 is a Sunday.
const SUNDAY = '2026-11-15T10:30:00Z';

type Case = [schedule: string, at: string, isDue: boolean];
const CASES: Case[] = [
  ['* * * * *', SUNDAY, true],
  ['* * * * *', '2026-11-15T10:30:59.9Z', true],
  ['30 * * * *', SUNDAY, true],
  ['31 * * * *', SUNDAY, false],
  ['30 10 * * *', SUNDAY, true],
  ['30 11 * * *', SUNDAY, false],
  ['0,15,30 * * * *', SUNDAY, true],
  ['0,15,45 * * * *', SUNDAY, false],
  ['20-40 * * * *', SUNDAY, true],
  ['31-40 * * * *', SUNDAY, false],
  ['*/10 * * * *', SUNDAY, true],
  ['*/7 * * * *', SUNDAY, false],
  ['*/7 * * * *', '2026-11-15T10:28:00Z', true],
  ['2-58/7 * * * *', SUNDAY, true],
  ['3-58/7 * * * *', SUNDAY, false],
  // A step after a single number means nothing, as in pg_cron.
  ['10/20 * * * *', SUNDAY, false],
  ['30/20 * * * *', SUNDAY, true],
  ['5,20-29/3,30 * * * *', SUNDAY, true],
  ['30 10 15 * *', SUNDAY, true],
  ['30 10 16 * *', SUNDAY, false],
  ['30 10 */2 * *', SUNDAY, true],
  ['30 10 * 11 *', SUNDAY, true],
  ['30 10 * nov *', SUNDAY, true],
  ['30 10 * NOV *', SUNDAY, true],
  ['30 10 * dec *', SUNDAY, false],
  ['30 10 * oct-dec *', SUNDAY, true],
  ['30 10 * * 0', SUNDAY, true],
  ['30 10 * * 7', SUNDAY, true],
  ['30 10 * * 6-7', SUNDAY, true],
  ['30 10 * * sun', SUNDAY, true],
  ['30 10 * * mon-fri', SUNDAY, false],
  ['30 10 * * mon-fri', '2026-11-16T10:30:00Z', true],
  ['30 10 * * */2', SUNDAY, true],
  ['30 10 * * */2', '2026-11-16T10:30:00Z', false],
  // Both days given: one of them is enough. One of them a star: the other decides.
  ['30 10 1 * sun', SUNDAY, true],
  ['30 10 15 * mon', SUNDAY, true],
  ['30 10 1 * mon', SUNDAY, false],
  ['30 10 * * mon', SUNDAY, false],
  ['30 10 1 * *', SUNDAY, false],
  ['30 10 $ * *', '2026-11-30T10:30:00Z', true],
  ['30 10 $ * *', '2026-11-29T10:30:00Z', false],
  ['30 10 $ * *', '2028-02-29T10:30:00Z', true],
  ['@hourly', '2026-11-15T10:00:30Z', true],
  ['@hourly', SUNDAY, false],
  ['@daily', '2026-11-15T00:00:00Z', true],
  ['@midnight', '2026-11-15T00:01:00Z', false],
  ['@weekly', '2026-11-15T00:00:00Z', true],
  ['@weekly', '2026-11-16T00:00:00Z', false],
  ['@monthly', '2026-11-01T00:00:00Z', true],
  ['@yearly', '2027-01-01T00:00:00Z', true],
  ['@annually', '2026-11-01T00:00:00Z', false],
  ['@reboot', SUNDAY, true],
  ['10 seconds', '2026-11-15T10:30:07Z', true],
];

describe('cron.due_jobs of the stand-in', () => {
  let databases: TestDatabases;
  let client: pg.Client;

  before(async () => {
    databases = await startDatabases({ db2: false });
    client = await openClient(databases.db1.url);
    await client.query('delete from cron.job');
  });
  after(async () => {
    await client?.end();
    await databases?.stop();
  });

  const schedule = async (text: string): Promise<number> =>
    Number((await client.query(`select cron.schedule('job', $1, 'select 1') as id`, [text])).rows[0].id);
  const due = async (at: string, since: string | null = null): Promise<string[]> => {
    const { rows } = await client.query(
      `select to_char(due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as due_at from cron.due_jobs($1, $2)`,
      [at, since],
    );
    return rows.map((row) => row.due_at);
  };

  for (const [text, at, isDue] of CASES) {
    it(`"${text}" is ${isDue ? '' : 'not '}due at ${at}`, async () => {
      await schedule(text);
      assert.equal((await due(at)).length, isDue ? 1 : 0);
    });
  }

  it('names the last of the moments that a stall missed, once', async () => {
    await schedule('*/10 * * * *');
    assert.deepEqual(await due('2026-11-15T10:35:20Z', '2026-11-15T10:04:50Z'), ['2026-11-15T10:30:00Z']);
    assert.deepEqual(await due('2026-11-15T10:35:20Z', '2026-11-15T10:30:10Z'), []);
  });

  it('leaves what lies more than a day back', async () => {
    await schedule('0 12 13 11 *');
    assert.deepEqual(await due(SUNDAY, '2026-11-01T00:00:00Z'), []);
  });

  it('does not name a job that was started for that moment, is switched off, or is of another database', async () => {
    const id = await schedule('* * * * *');
    assert.deepEqual(await due(SUNDAY), [SUNDAY]);
    await client.query('select cron.run_job($1, $2)', [id, SUNDAY]);
    assert.deepEqual(await due('2026-11-15T10:30:40Z'), []);
    assert.deepEqual(await due('2026-11-15T10:31:00Z'), ['2026-11-15T10:31:00Z']);
    await client.query('select cron.alter_job($1, active => false)', [id]);
    assert.deepEqual(await due('2026-11-15T10:32:00Z'), []);
    await client.query(`select cron.alter_job($1, active => true, database => 'elsewhere')`, [id]);
    assert.deepEqual(await due('2026-11-15T10:33:00Z'), []);
  });
});
