import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { withBothClusters } from '../../src/stack/both_clusters.ts';
import { runHere } from '../cli/support.ts';
import { PROJECT, readEnv, startDev, stopDev } from '../support/dev.ts';
import { contentOf, furnish } from './support.ts';

describe('a stack that another version made', () => {
  let home: string;
  let dir: string;
  let file: string;

  const contents = () =>
    withBothClusters(dir, async ({ db1, db2 }) => [await contentOf(db1), await contentOf(db2)]);
  const states = (url: string) =>
    withClient(
      url,
      async (db1) =>
        (await db1.query(`select state, count(*)::int as n from public.claims group by 1 order by 1`)).rows,
    );

  // As an earlier version would have left it: a record of other statements, and a table without a column of today's.
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'));
    dir = join(home, 'stack');
    file = join(home, 'old.jsonl');
    await withBothClusters(dir, async (urls, { authenticatorPassword }) => {
      for (const side of ['db1', 'db2'] as const)
        await withClient(urls[side], async (client) => {
          await applyPlatform(client, { authenticatorPassword });
          await migrate(client, join(PROJECT, side));
        });
      await furnish({ DB1_URL: urls.db1, DB2_URL: urls.db2 });
      await withClient(urls.db2, async (db2) => {
        await db2.query('alter table public.webhook_endpoints drop column backoff_cap_sec');
        await db2.query(
          `update supabase_migrations.schema_migrations set statements = '{select 1}' where name = 'webhooks'`,
        );
      });
    });
  });
  after(() => rmSync(home, { recursive: true }));

  test('is refused by `npm start` before either database is changed', async () => {
    const before = await contents();
    const dev = startDev({ dir });
    assert.equal(await dev.ended, 1);
    assert.match(dev.output(), /DB2 \(ledger\): \d+_webhooks\.sql differs from the one that was applied/);
    assert.match(
      dev.output(),
      /npx sluice export sluice-export\.jsonl\n {2}npm run reset\n {2}npx sluice import sluice-export\.jsonl\n {2}npm start/,
    );
    assert.deepEqual(await contents(), before);
  });

  test('is exported although it does not run, reset, imported, and starts', async () => {
    const env = { SLUICE_DIR: dir };
    const exported = await runHere(['export', file], env);
    assert.equal(exported.code, 0, exported.stderr);
    assert.equal((await runHere(['reset'], env)).code, 0);
    assert.equal(existsSync(dir), false);
    const imported = await runHere(['import', file], env);
    assert.equal(imported.code, 0, imported.stderr);
    const dev = startDev({ dir });
    await dev.ready;
    try {
      const { DB1_URL = '', DB2_URL = '' } = readEnv(dir);
      const { stdout } = await runHere(['reconcile'], { DB1_URL, DB2_URL });
      assert.match(stdout, /No differences/);
    } finally {
      await stopDev(dev);
    }
  });

  test('is imported into a stack that was just started with its demo pool, while it runs', async () => {
    const env = { SLUICE_DIR: dir };
    assert.equal((await runHere(['reset'], env)).code, 0);
    const dev = startDev({ dir });
    await dev.ready;
    try {
      const { DB1_URL = '', DB2_URL = '', OPS_SITE_ID } = readEnv(dir);
      const { code, stderr } = await runHere(['import', file], env);
      assert.equal(code, 0, stderr);
      assert.equal((await states(DB1_URL)).length > 0, true);
      const pools = await withClient(DB1_URL, (db1) =>
        db1.query('select pool_id, count(*)::int as n from public.inventory_slots group by 1 order by 1'),
      );
      assert.deepEqual(pools.rows, [
        { pool_id: 'gala', n: 4 },
        { pool_id: 'opera', n: 19 },
      ]);
      const sites = await withClient(DB2_URL, (db2) =>
        db2.query('select site_id from public.call_sites order by 1'),
      );
      assert.deepEqual(
        sites.rows.map(({ site_id }) => site_id),
        [OPS_SITE_ID, 'site_1'],
      );
      const endpoints = await withClient(DB2_URL, (db2) =>
        db2.query('select name from public.webhook_endpoints order by 1'),
      );
      assert.deepEqual(
        endpoints.rows.map(({ name }) => name),
        ['daily', 'stripe', 'twilio', 'whatsapp'],
      );
    } finally {
      await stopDev(dev);
    }
  });
});
