import { join } from 'node:path';
import pg from 'pg';
import { POOLER_VARIABLES, requireDirectUrl } from '../db/pooler.ts';
import { findPooler } from '../db/pooler_look.ts';
import { StackError } from '../failure.ts';
import { adopt as adoptTables } from '../migrate/adopt/adopt.ts';
import { TITLES } from '../migrate/edited.ts';
import { migrate as applyMigrations } from '../migrate/migrate.ts';
import { isFree, lookAtBoth, planText, refuseObstacles } from '../migrate/plan.ts';
import { applyPlatform, rolesScript } from '../migrate/platform/platform.ts';
import type { SideName } from '../migrate/sides.ts';
import { withClient } from '../migrate/sql.ts';
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
  const urls = readUrls();
  return telling(async () => {
    for (const side of ['db1', 'db2'] as const) await refusePooler(side, urls[side]);
    // Before anything is changed in either.
    const surveys = await lookAtBoth(urls, adopt);
    await refuseUnfinishedImport(urls);
    if (plan) {
      console.log(json ? JSON.stringify({ databases: surveys }, null, 2) : planText(surveys));
      return isFree(surveys) ? 0 : 1;
    }
    refuseObstacles(surveys);
    if (surveys.some(({ adopts }) => adopts.length > 0))
      for (const what of await withClient(urls.db2, adoptTables)) console.log(`db2: ${what}`);
    for (const side of ['db1', 'db2'] as const) await prepare(side, urls[side], seed);
    return 0;
  });
}

function readUrls(): Record<SideName, string> {
  const { DB1_URL, DB2_URL } = process.env;
  if (!DB1_URL || !DB2_URL)
    throw new StackError('DB1_URL and DB2_URL must both be set', 'see `sluice migrate --help`');
  const [db1, db2] = [requireDirectUrl(DB1_URL), requireDirectUrl(DB2_URL)];
  if (db1 === db2)
    throw new StackError(
      'DB1_URL and DB2_URL are the same database',
      'give the intake and the ledger one each',
    );
  return { db1, db2 };
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

async function prepare(side: SideName, url: string, seed: boolean): Promise<void> {
  await withClient(url, async (client) => {
    await applyPlatform(client);
    const { applied, seeded } = await applyMigrations(client, join(PROJECT_ROOT, side), { seed });
    for (const file of applied) console.log(`${side}: applied ${file}`);
    if (applied.length === 0) console.log(`${side}: up to date`);
    if (seeded) console.log(`${side}: seeded`);
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

Creates the roles and schemas that Supabase would have, then applies the migrations of db1/ and db2/. Applies only what
is missing, so it can be run again. Looks at both databases first, and changes neither where something stands in the way.`,
  options: {
    plan: { about: 'show what would change on both databases, and what stands in the way; change nothing' },
    json: { about: 'the plan as JSON' },
    adopt: {
      about:
        'take over webhook_events, webhook_side_effects, calls and audit.audit_logs that the ledger has already',
    },
    roles: { about: 'print the SQL that makes the roles, for a superuser to run; needs no database' },
    seed: { about: 'also load the demo pool of db1/supabase/seed.sql' },
  },
  environment: {
    DB1_URL:
      'the intake database, as its owner; one that may create roles, or with the roles there (--roles)',
    DB2_URL: 'the ledger database, likewise',
    ...POOLER_VARIABLES,
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
