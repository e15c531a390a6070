import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { type Outcome, skippedOne, sum } from '../run/outcome.ts';
import type { Stage, StageContext } from '../run/stage.ts';
import { startDatabases } from '../support/databases.ts';
import { prepareDebian, startDebianCluster } from './debian_cluster.ts';
import { runTapFile } from './run_file.ts';

const SIDES = ['db1', 'db2'] as const;
type Side = (typeof SIDES)[number];

/** The pgTAP files on the Postgres that `npm start` brings. */
export const pgtapOnEmbedded: Stage = {
  name: 'pgtap-embedded',
  run: async (context) => {
    const databases = await startDatabases();
    try {
      return sum(await Promise.all(SIDES.map((side) => runSide(context, side, databases[side].url))));
    } finally {
      await databases.stop();
    }
  },
};

/** The same files on the oldest Postgres we support, with the real pg_cron. */
export const pgtapOnDebian: Stage = {
  name: 'pgtap-debian15',
  run: async (context) => {
    const reason = await prepareDebian();
    if (reason !== undefined) return skippedOne('pgTAP on Debian’s Postgres 15', reason);
    return sum(await Promise.all(SIDES.map((side) => onDebianCluster(context, side))));
  },
};

async function onDebianCluster(context: StageContext, side: Side): Promise<Outcome> {
  const cluster = await startDebianCluster(true);
  try {
    await withClient(cluster.url, async (client) => {
      await applyPlatform(client, { authenticatorPassword: 'test', defaults: 'new' });
      await migrate(client, join(context.root, side));
    });
    return await runSide(context, side, cluster.url);
  } finally {
    cluster.stop();
  }
}

async function runSide({ root, print }: StageContext, side: Side, url: string): Promise<Outcome> {
  await withClient(url, (client) =>
    client.query('create extension if not exists pgtap with schema extensions'),
  );
  const outcomes: Outcome[] = [];
  for (const file of findTapFiles(root, side)) {
    const outcome = await runTapFile(root, file, url);
    print(`  ${outcome.failures.length === 0 ? 'ok  ' : 'FAIL'} ${file} (${outcome.passed} passed)`);
    outcomes.push(outcome);
  }
  return sum(outcomes);
}

function findTapFiles(root: string, side: Side): string[] {
  const folder = join(side, 'supabase', 'tests');
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.sql'))
    .map((path) => join(folder, path))
    .sort();
}
