// Where export and import find the two databases: DB1_URL and DB2_URL, the stack that runs, or the stack that does not.

import { join } from 'node:path';
import { requireDirectUrl } from '../db/pooler.ts';
import { StackError } from '../failure.ts';
import { refuseEdited } from '../migrate/edited.ts';
import { migrate } from '../migrate/migrate.ts';
import { applyPlatform } from '../migrate/platform/platform.ts';
import { refuseMisplaced, sideOf } from '../migrate/sides.ts';
import { withClient } from '../migrate/sql.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { hasClusters, withBothClusters } from '../stack/both_clusters.ts';
import { runningPid } from '../stack/run_files.ts';
import { layout, readSettings } from '../stack/settings.ts';
import type { Urls } from '../transfer/export.ts';
import { readDatabaseUrls } from './operator.ts';

/** To read them, as whatever version made them. */
export async function withOldDatabases<T>(
  env: NodeJS.ProcessEnv,
  work: (urls: Urls) => Promise<T>,
): Promise<T> {
  const urls = urlsOf(env);
  if (urls !== undefined) return work(await placed(urls));
  const { dir } = readSettings(env);
  if (!hasClusters(dir))
    throw new StackError(
      `DB1_URL and DB2_URL are not set, and ${dir} has no databases`,
      'set both, or set SLUICE_DIR to the folder of the stack',
    );
  return withBothClusters(dir, work);
}

/** To fill them. Those of a stack that does not run are made and migrated first, and not seeded. */
export async function withNewDatabases<T>(
  env: NodeJS.ProcessEnv,
  work: (urls: Urls) => Promise<T>,
): Promise<T> {
  const urls = urlsOf(env);
  if (urls !== undefined) {
    await refuseEdited(await placed(urls), 'own');
    return work(urls);
  }
  return withBothClusters(readSettings(env).dir, async (embedded, { authenticatorPassword }) => {
    await refuseEdited(embedded, 'embedded');
    for (const side of ['db1', 'db2'] as const) {
      await withClient(embedded[side], async (client) => {
        await applyPlatform(client, { authenticatorPassword });
        await migrate(client, join(PROJECT_ROOT, side));
      });
    }
    return work(embedded);
  });
}

/** Undefined where no addresses are given and no stack runs. */
function urlsOf(env: NodeJS.ProcessEnv): Urls | undefined {
  const isGiven = env.DB1_URL || env.DB2_URL || env.SLUICE_CELLS;
  if (!isGiven && runningPid(layout(readSettings(env).dir).run) === undefined) return undefined;
  const { cells, db1Url, db2Url } = readDatabaseUrls(env);
  if (cells.length > 1)
    throw new StackError(
      'an export and an import are of one intake and its ledger, and SLUICE_CELLS names several',
      'move all pools into one cell first (`npx sluice cells drain`), then name that one by DB1_URL: docs/fleet.md',
    );
  if (!db1Url || !db2Url)
    throw isGiven
      ? new StackError(
          'DB1_URL and DB2_URL must both be set',
          'set both, or neither for the stack in .sluice',
        )
      : new StackError('the stack in .sluice is starting or stopping', 'try again when it runs or has ended');
  return { db1: requireDirectUrl(db1Url, env), db2: requireDirectUrl(db2Url, env) };
}

async function placed(urls: Urls): Promise<Urls> {
  refuseMisplaced({ db1: await withClient(urls.db1, sideOf), db2: await withClient(urls.db2, sideOf) });
  return urls;
}
