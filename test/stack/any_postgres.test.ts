import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { withClient } from '../../src/migrate/sql.ts';
import { type Cluster, startCluster } from '../../src/stack/postgres.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { prepareDebian, startDebianCluster } from '../pgtap/debian_cluster.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

const migrate = (env: Record<string, string>, ...args: string[]) =>
  spawnSync(process.execPath, [SLUICE, 'migrate', ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });

/** The addresses of two new databases of the server. */
async function newPair(url: string): Promise<{ DB1_URL: string; DB2_URL: string }> {
  await withClient(url, async (client) => {
    await client.query('create database intake');
    await client.query('create database ledger');
  });
  return { DB1_URL: url.replace(/\/postgres$/, '/intake'), DB2_URL: url.replace(/\/postgres$/, '/ledger') };
}

const jobsOf = (url: string) =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      `select (select count(*)::int from pg_extension where extname = 'pg_cron') as extensions,
         (select count(*)::int from cron.job) as jobs, to_regproc('cron.run_job') is not null as is_stand_in`,
    );
    return rows[0];
  });

describe('sluice migrate on a Postgres that has none of our extensions', () => {
  let dir: string;
  let cluster: Cluster;
  let env: { DB1_URL: string; DB2_URL: string };

  before(async () => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-any-')));
    giveToServer(dir);
    cluster = await startCluster({ dir: join(dir, 'one'), password: 'test' });
    env = await newPair(cluster.url);
  });
  after(async () => {
    await cluster.stop('immediate');
    rmSync(dir, { recursive: true });
  });

  test('puts pgmq and the stand-ins in place as plain SQL, and a slot can be claimed', async () => {
    const { status, stdout, stderr } = migrate(env, '--seed');
    assert.equal(status, 0, stderr);
    assert.match(stdout, /db1: applied 20260224100000_intake_engine_setup/);
    const { rows } = await withClient(env.DB1_URL, (client) =>
      client.query(
        `select claim_resource_and_queue('demo_concert_2026', 'user_1') is not null as sold,
           (select count(*)::int from pg_extension where extname in ('pgmq', 'pg_cron', 'pg_net')) as extensions,
           (select count(*)::int from cron.job) as jobs`,
      ),
    );
    assert.deepEqual(rows, [{ sold: true, extensions: 0, jobs: 8 }]);
  });

  test('changes nothing the second time', () => {
    const { status, stdout } = migrate(env, '--seed');
    assert.equal(status, 0);
    assert.equal(stdout, 'db1: up to date\ndb2: up to date\n');
  });
});

test('sluice migrate puts its own cron in place where the server preloads pg_cron for another database', async (t) => {
  const reason = await prepareDebian();
  if (reason !== undefined) {
    t.skip(reason);
    return;
  }
  // Its pg_cron works in the database postgres alone.
  const debian = await startDebianCluster(true);
  t.after(() => debian.stop());
  const env = await newPair(debian.url);
  const { status, stderr } = migrate(env);
  assert.equal(status, 0, stderr);
  assert.deepEqual(await jobsOf(env.DB1_URL), { extensions: 0, jobs: 8, is_stand_in: true });
  const there = migrate({ ...env, DB1_URL: debian.url });
  assert.equal(there.status, 0, there.stderr);
  assert.deepEqual(await jobsOf(debian.url), { extensions: 1, jobs: 8, is_stand_in: false });
});
