import { join } from 'node:path';
import pg from 'pg';
import { POOLER_VARIABLES, requireDirectUrl } from '../db/pooler.ts';
import { findPooler } from '../db/pooler_look.ts';
import { StackError } from '../failure.ts';
import { CELL_VARIABLES, type CellAddress, readCells } from '../fleet/addresses.ts';
import { adopt as adoptTables } from '../migrate/adopt/adopt.ts';
import { TITLES } from '../migrate/edited.ts';
import { migrate as applyMigrations } from '../migrate/migrate.ts';
import { isFree, lookAtBoth, planText, refuseObstacles } from '../migrate/plan.ts';
import { applyPlatform, rolesScript } from '../migrate/platform/platform.ts';
import type { SideName } from '../migrate/sides.ts';
import { withClient } from '../migrate/sql.ts';
import type { Survey } from '../migrate/survey.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { refuseUnfinishedImport } from '../transfer/unfinished.ts';
import { action, UsageError } from './grammar.ts';

interface Wanted {
  readonly seed: boolean;
  readonly plan: boolean;
  readonly adopt: boolean;
  readonly json: boolean;
}

async function run({ seed, plan, adopt, json }: Wanted): Promise<number> {
  if (json && !plan) throw new UsageError('--json is for --plan', 'see `sluice migrate --help`');
  const { cells, db2 } = readUrls();
  return telling(async () => {
    for (const { url } of cells) await refusePooler('db1', url);
    await refusePooler('db2', db2);
    // Before anything is changed in any of them.
    const surveys = await lookAtAll(cells, db2, adopt);
    if (plan) {
      console.log(json ? JSON.stringify({ databases: surveys }, null, 2) : planText(surveys));
      return isFree(surveys) ? 0 : 1;
    }
    refuseObstacles(surveys);
    if (surveys.some(({ adopts }) => adopts.length > 0))
      for (const what of await withClient(db2, adoptTables)) console.log(`db2: ${what}`);
    // The demo pool lives in the first.
    for (const [at, { name, url }] of cells.entries())
      await prepare('db1', url, seed && at === 0, cells.length > 1 ? `db1 (cell ${name})` : 'db1');
    await prepare('db2', db2, seed);
    return 0;
  });
}

/** The ledger is looked at once. */
async function lookAtAll(cells: readonly CellAddress[], db2: string, adopt: boolean): Promise<Survey[]> {
  const surveys: Survey[] = [];
  for (const [at, { url: db1 }] of cells.entries()) {
    const both = await lookAtBoth({ db1, db2 }, adopt);
    surveys.push(...both.filter(({ side }) => side === 'db1' || at === cells.length - 1));
  }
  await refuseUnfinishedImport(
    cells.map(({ url }) => url),
    db2,
  );
  return surveys;
}

function readUrls(): { cells: readonly CellAddress[]; db2: string } {
  const cells = readCells(process.env).map(({ name, url }) => ({ name, url: requireDirectUrl(url) }));
  const { DB2_URL } = process.env;
  if (cells.length === 0 || !DB2_URL)
    throw new StackError('DB1_URL and DB2_URL must both be set', 'see `sluice migrate --help`');
  const db2 = requireDirectUrl(DB2_URL);
  if (cells.some(({ url }) => url === db2))
    throw new StackError(
      'DB1_URL and DB2_URL are the same database',
      'give the intake and the ledger one each',
    );
  return { cells, db2 };
}

/** A lock that keeps two runs apart belongs to a session, which such a pooler does not give. */
async function refusePooler(side: SideName, url: string): Promise<void> {
  if ((await findPooler(url)) !== 'transaction') return;
  const name = side.toUpperCase();
  throw new StackError(
    `${TITLES[side]}: the address leads through a pooler in transaction mode, and migrations need a session`,
    `set SLUICE_POOLER=transaction and ${name}_DIRECT_URL, or give the direct address in ${name}_URL`,
  );
}

async function prepare(side: SideName, url: string, seed: boolean, title: string = side): Promise<void> {
  await withClient(url, async (client) => {
    await applyPlatform(client);
    const { applied, seeded } = await applyMigrations(client, join(PROJECT_ROOT, side), { seed });
    for (const file of applied) console.log(`${title}: applied ${file}`);
    if (applied.length === 0) console.log(`${title}: up to date`);
    if (seeded) console.log(`${title}: seeded`);
  }).catch((error: unknown) => {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new StackError(
      `${TITLES[side]}: ${error.message} (${error.code})`,
      error.hint ?? 'run `npx sluice migrate --plan`; what was applied stays, and a second run does the rest',
      error,
    );
  });
}

/** What a database refuses is told in a sentence: a person can do something about it. */
async function telling<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new StackError(
      `${error.message} (${error.code})`,
      error.hint ?? 'see DB1_URL and DB2_URL, and the rights of their roles; neither database was changed',
      error,
    );
  }
}

export const command = action({
  about: `Prepare two Postgres databases of your own (15 or newer) for Sluice

Creates the roles and schemas that Supabase would have, then applies the migrations of db1/ and db2/. Applies only missing
ones, so you can run it again. Looks at both databases first, and changes neither if something stands in the way.`,
  options: {
    plan: { about: 'show what would change on both databases, and what stands in the way; change nothing' },
    json: { about: 'the plan as JSON' },
    adopt: {
      about:
        'take over webhook_events, webhook_side_effects, credit_ledger, calls and audit.audit_logs that the ledger already has',
    },
    roles: { about: 'print the SQL that makes the roles, for a superuser to run; works without a database' },
    seed: { about: 'also load the demo pool of db1/supabase/seed.sql' },
  },
  environment: {
    DB1_URL:
      'the intake database, as its owner, who may create roles; or with the roles made before (--roles)',
    DB2_URL: 'the ledger database, likewise',
    ...POOLER_VARIABLES,
    ...CELL_VARIABLES,
  },
  exits: [
    'when both databases are up to date, or nothing stands in the way of the plan',
    'when one is not, or something does',
  ],
  examples: [
    'DB1_URL=postgres://me@localhost/intake DB2_URL=postgres://me@localhost/ledger sluice migrate',
    'sluice migrate --plan --adopt',
    'sluice migrate --roles | psql -U postgres',
  ],
  run: async ({ roles, ...wanted }) => {
    if (!roles) return run(wanted);
    console.log(rolesScript().trimEnd());
    return 0;
  },
});
