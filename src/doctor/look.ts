// What a database says about itself, asked directly: the server may be down, and is not needed for it.

import { join } from 'node:path';
import pg from 'pg';
import { blameOf } from '#core/failure.ts';
import { findPooler, type PoolerKind } from '../db/pooler_look.ts';
import { primaryOf } from '../db/primary.ts';
import { findEdited, listMigrations, recordedMigrations } from '../migrate/recorded.ts';
import { type SideName, sideOf } from '../migrate/sides.ts';
import { sqlFile } from '../migrate/sql.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { expectedRights, type RightDifference } from './rights.ts';
import { expectedRowSecurity, rowSecurityDifferences } from './row_security.ts';

export interface Facts {
  readonly version: string;
  readonly version_num: number;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  readonly standbys: readonly Standby[];
  /** What this connection begins transactions at. */
  readonly isolation: string;
  /** The roles and databases for which another level than read committed is set. */
  readonly isolation_set_for: string[];
  readonly is_standby: boolean;
  readonly role: string;
  readonly sees_all_rows: boolean;
}

/** A server that takes the log of this one, as pg_stat_replication has it; nulls where this role may not see them. */
export interface Standby {
  readonly name: string;
  readonly state: string | null;
  readonly sync_state: string | null;
}

export interface Look {
  readonly url: string;
  /** Left out where the database did not answer. */
  readonly facts?: Facts;
  readonly error?: string;
  /** Whether its address leads through one; left out where the database did not answer. */
  readonly pooler?: PoolerKind;
  /** Which database it is; left out where it is neither yet. Where it is the other one, nothing more was looked at. */
  readonly side?: SideName;
  /** True where this role may not read the record of migrations; nothing is known about them and the rights then. */
  readonly isDenied: boolean;
  /** Versions of migrations that this program has and the database has not, and the other way round. */
  readonly missing: string[];
  readonly unknown: string[];
  /** Files of migrations that were applied and are other files here. */
  readonly edited: string[];
  readonly applied: number;
  /** Left out where migrations are missing: they would explain every difference. */
  readonly rights?: RightDifference[];
  /** Differences from the row security of the migrations, a sentence each; left out likewise. */
  readonly rowSecurity?: string[];
  /** Pools of the intake whose claims would become dead letters before a worker tried one. */
  readonly untriedPools: string[];
  /** Pools of the intake whose validation refused some of the newest claims. */
  readonly refusingPools: RefusingPool[];
  /** Pools of the intake that workers call hooks for. */
  readonly hookedPools: string[];
}

export interface RefusingPool {
  readonly pool_id: string;
  /** Of the newest claims of all pools, how many are of this one, and how many of these it refused. */
  readonly claims: number;
  readonly refused: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = 15_000;
/** Enough to see what a hook answers now; reading them takes some 10 ms. */
const NEWEST_CLAIMS = 10_000;

export async function look(side: SideName, url: string): Promise<Look> {
  try {
    const seen = await lookAt(side, url, await primaryOf(url));
    return { ...seen, pooler: await findPooler(url) };
  } catch (error) {
    return { ...NOTHING, url, error: messageOf(error) };
  }
}

async function lookAt(side: SideName, url: string, primary: string): Promise<Look> {
  const client = new pg.Client({
    connectionString: primary,
    application_name: 'sluice-doctor',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  // A connection that breaks tells its query, too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query(sqlFile('../doctor/sql/facts.sql'));
    const { has_migrations, ...facts } = rows[0];
    const actual = await sideOf(client);
    const seen = { ...NOTHING, url, facts, ...(actual && { side: actual }) };
    if (actual !== undefined && actual !== side) return seen;
    return {
      ...seen,
      ...(await compare(client, side, has_migrations)),
      ...(actual === 'db1' && {
        untriedPools: await findUntriedPools(client),
        refusingPools: await findRefusingPools(client),
        hookedPools: await findHookedPools(client),
      }),
    };
  } finally {
    await client.end().catch(() => undefined);
  }
}

const NOTHING = {
  isDenied: false,
  missing: [],
  unknown: [],
  edited: [],
  applied: 0,
  untriedPools: [],
  refusingPools: [],
  hookedPools: [],
};

async function compare(client: pg.Client, side: SideName, hasTable: boolean): Promise<Partial<Look>> {
  try {
    const migrations = await compareMigrations(client, side, hasTable);
    if (migrations.missing.length > 0) return migrations;
    const rights = await compareRights(client, side);
    return { ...migrations, rights, rowSecurity: await compareRowSecurity(client, side) };
  } catch (error) {
    if (blameOf(error) === 'denied') return { isDenied: true };
    throw error;
  }
}

async function compareMigrations(client: pg.Client, side: SideName, hasTable: boolean) {
  const files = listMigrations(join(PROJECT_ROOT, side));
  const known = files.map(({ version }) => version);
  const applied = hasTable ? await recordedMigrations(client) : [];
  const recorded = applied.map(({ version }) => version);
  return {
    edited: findEdited(applied, files).map(({ file }) => file),
    missing: known.filter((version) => !recorded.includes(version)),
    unknown: recorded.filter((version) => !known.includes(version)),
    applied: known.filter((version) => recorded.includes(version)).length,
  };
}

async function compareRights(client: pg.Client, side: SideName): Promise<RightDifference[]> {
  const { schemas, grants } = expectedRights(side);
  const { rows } = await client.query(sqlFile('../doctor/sql/right_differences.sql'), [
    schemas,
    grants.map(({ role }) => role),
    grants.map(({ privilege }) => privilege),
    grants.map(({ object }) => object),
  ]);
  return rows;
}

async function compareRowSecurity(client: pg.Client, side: SideName): Promise<string[]> {
  const { schemas } = expectedRights(side);
  const { rows } = await client.query(sqlFile('../doctor/sql/row_security.sql'), [schemas]);
  return rowSecurityDifferences(expectedRowSecurity(side), rows[0]);
}

async function findUntriedPools(client: pg.Client): Promise<string[]> {
  // A message is a dead letter when its attempts reach max_retries: with 1 the first delivery is not tried.
  const { rows } = await client.query(
    'select c.pool_id from public.engine_config c where c.max_retries < 2 order by c.pool_id',
  );
  return rows.map((row): string => row.pool_id);
}

async function findHookedPools(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(
    `select c.pool_id from public.engine_config c
     where c.validation_webhook_url is not null or c.commit_webhook_url is not null order by c.pool_id`,
  );
  return rows.map((row): string => row.pool_id);
}

async function findRefusingPools(client: pg.Client): Promise<RefusingPool[]> {
  // The order of ids is the order of claims, so this reads the end of one index, however many claims there are.
  const { rows } = await client.query(
    `select n.pool_id, count(*)::int as claims, count(*) filter (where n.state = 'refused')::int as refused
     from (select c.pool_id, c.state from public.claims c order by c.claim_id desc limit $1) n
     group by n.pool_id having count(*) filter (where n.state = 'refused') > 0 order by 3 desc, 1`,
    [NEWEST_CLAIMS],
  );
  return rows;
}

/** A refused connection to a name with several addresses has its reasons inside. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
