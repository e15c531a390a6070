import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { refuseEdited } from '../migrate/edited.ts';
import { migrate as applyMigrations } from '../migrate/migrate.ts';
import { applyPlatform } from '../migrate/platform/platform.ts';
import { refuseMisplaced, sideOf } from '../migrate/sides.ts';
import { serverVersion, withClient } from '../migrate/sql.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { refuseUnfinishedImport } from '../transfer/unfinished.ts';
import { action } from './grammar.ts';

const OLDEST_SERVER_VERSION = 150_000;

async function run(seed: boolean): Promise<number> {
  const { DB1_URL: db1, DB2_URL: db2 } = process.env;
  if (!db1 || !db2) {
    throw new StackError('DB1_URL and DB2_URL must both be set', 'see `sluice migrate --help`');
  }
  if (db1 === db2) {
    throw new StackError(
      'DB1_URL and DB2_URL are the same database',
      'give the intake and the ledger one each',
    );
  }
  // Before anything is changed in either.
  refuseMisplaced({ db1: await withClient(db1, sideOf), db2: await withClient(db2, sideOf) });
  await refuseEdited({ db1, db2 }, 'own');
  await refuseUnfinishedImport({ db1, db2 });
  await prepare('db1', db1, seed);
  await prepare('db2', db2, seed);
  return 0;
}

async function prepare(name: 'db1' | 'db2', url: string, seed: boolean): Promise<void> {
  await withClient(url, async (client) => {
    if ((await serverVersion(client)) < OLDEST_SERVER_VERSION) {
      throw new StackError(`${name} is an older Postgres than 15`, 'upgrade it: views and grants need 15');
    }
    await applyPlatform(client);
    const { applied, seeded } = await applyMigrations(client, join(PROJECT_ROOT, name), { seed });
    for (const file of applied) console.log(`${name}: applied ${file}`);
    if (applied.length === 0) console.log(`${name}: up to date`);
    if (seeded) console.log(`${name}: seeded`);
  });
}

export const command = action({
  about: `Prepare two Postgres databases of your own (15 or newer) for Sluice

Creates the roles and schemas that Supabase would have, then applies the migrations of db1/ and db2/. Applies only what
is missing, so it can be run again.`,
  options: { seed: { about: 'also load the demo pool of db1/supabase/seed.sql' } },
  environment: {
    DB1_URL: 'the intake database, as a role that may create roles and extensions',
    DB2_URL: 'the ledger database, likewise',
  },
  exits: ['when both databases are up to date', 'when one is not'],
  examples: ['DB1_URL=postgres://me@localhost/intake DB2_URL=postgres://me@localhost/ledger sluice migrate'],
  run: ({ seed }) => run(seed),
});
