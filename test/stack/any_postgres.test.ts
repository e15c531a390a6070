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

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

describe('sluice migrate on a Postgres that has none of our extensions', () => {
  let dir: string;
  let cluster: Cluster;
  let env: Record<string, string>;

  const migrate = () =>
    spawnSync(process.execPath, [SLUICE, 'migrate', '--seed'], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });

  before(async () => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-any-')));
    giveToServer(dir);
    cluster = await startCluster({ dir: join(dir, 'one'), password: 'test' });
    await withClient(cluster.url, async (client) => {
      await client.query('create database intake');
      await client.query('create database ledger');
    });
    env = {
      DB1_URL: cluster.url.replace(/\/postgres$/, '/intake'),
      DB2_URL: cluster.url.replace(/\/postgres$/, '/ledger'),
    };
  });
  after(async () => {
    await cluster.stop('immediate');
    rmSync(dir, { recursive: true });
  });

  test('puts pgmq and the stand-ins in place as plain SQL, and a slot can be claimed', async () => {
    const { status, stdout, stderr } = migrate();
    assert.equal(status, 0, stderr);
    assert.match(stdout, /db1: applied 20260224100000_intake_engine_setup/);
    const { rows } = await withClient(env.DB1_URL ?? '', (client) =>
      client.query(
        `select claim_resource_and_queue('demo_concert_2026', 'user_1') is not null as sold,
           (select count(*)::int from pg_extension where extname in ('pgmq', 'pg_cron', 'pg_net')) as extensions,
           (select count(*)::int from cron.job) as jobs`,
      ),
    );
    assert.deepEqual(rows, [{ sold: true, extensions: 0, jobs: 8 }]);
  });

  test('changes nothing the second time', () => {
    const { status, stdout } = migrate();
    assert.equal(status, 0);
    assert.equal(stdout, 'db1: up to date\ndb2: up to date\n');
  });
});
