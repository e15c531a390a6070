// DB2 on the real pg_cron, as on Supabase, where no worker runs: its migrations schedule what a worker would do, and the
// examination knows those jobs. Without pg_cron, or with our stand-in, nothing is scheduled and nothing fails.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import type { CallFunction } from '#core/call_function.ts';
import { checkHealth, type HealthCheck, JOBS } from '#core/console/health.ts';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { type DebianCluster, prepareDebian, startDebianCluster } from '../pgtap/debian_cluster.ts';
import { PROJECT } from '../support/dev.ts';
import { openSession, type Session } from '../support/sessions.ts';

const JOBS_OF_DB2 = Object.keys(JOBS.DB2).sort();

/** What the console says of DB2's jobs and webhook workers; DB1 is away. */
async function examine({ rows }: Session): Promise<HealthCheck[]> {
  const items = await checkHealth({
    intakes: [{ call: () => Promise.reject(new Error('away')) }],
    db2: ((name: string) => rows(`select public.${name}()`)) as CallFunction,
    now: Date.now,
  });
  return items.filter(({ kind }) => kind === 'job' || kind === 'workers');
}

const skip = (await prepareDebian()) ?? false;

for (const withCron of [true, false])
  describe(`DB2 on a server ${withCron ? 'with' : 'without'} pg_cron`, { skip }, () => {
    let cluster: DebianCluster;
    let session: Session;
    before(async () => {
      cluster = await startDebianCluster(withCron);
      await withClient(cluster.url, async (client: pg.Client) => {
        await applyPlatform(client, { authenticatorPassword: 'test', defaults: 'new' });
        await migrate(client, join(PROJECT, 'db2'));
      });
      session = await openSession(cluster.url);
    });
    after(async () => {
      await session?.close();
      cluster?.stop();
    });
    const scheduled = async () =>
      (await session.rows('select jobname from cron.job order by 1')).map(({ jobname }) => jobname);

    if (withCron) {
      test('has the jobs that do what a worker would', async () => {
        assert.deepEqual(await scheduled(), JOBS_OF_DB2);
      });

      test('counts a job that ran as a worker, so that no alert tells of none', async () => {
        await session.client.query(
          `insert into cron.job_run_details (jobid, runid, status, start_time)
           select jobid, 1000000, 'succeeded', now() from cron.job where jobname = 'webhook_work'`,
        );
        assert.equal(await session.value(`select (public.ledger_sample() ->> 'webhook_workers')::int`), 1);
        const crew = (await examine(session)).find(({ kind }) => kind === 'workers');
        assert.deepEqual([crew?.status, crew?.summary], ['ok', 'none; pg_cron does the work']);
      });

      test('tells of a job that is missing', async () => {
        const job = async (name: string) =>
          (await examine(session)).find((check) => check.name === `${name} (DB2)`);
        for (const name of JOBS_OF_DB2)
          assert.doesNotMatch((await job(name))?.summary ?? 'not scheduled', /^not scheduled/, name);
        await session.client.query(`select cron.unschedule('webhook_work')`);
        const { status, summary } = (await job('webhook_work')) ?? {};
        assert.deepEqual([status, summary], ['warn', `not scheduled: ${JOBS.DB2.webhook_work}`]);
      });
    } else
      test('schedules nothing that no one would run, and names what no worker does', async () => {
        assert.deepEqual(await scheduled(), []);
        const missing = (await examine(session)).filter(({ kind }) => kind === 'job');
        assert.deepEqual(
          missing.map(({ name }) => name),
          JOBS_OF_DB2.map((name) => `${name} (DB2)`),
        );
        const worker = await openSession(cluster.url);
        await worker.client.query(`set application_name = 'sluice-webhook-worker'`);
        const beside = await examine(session);
        await worker.close();
        assert.deepEqual(
          beside.map(({ kind, status }) => [kind, status]),
          [['workers', 'ok']],
        );
      });
  });
