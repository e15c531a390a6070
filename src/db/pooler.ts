// Poolers in transaction mode: PgBouncer, Supavisor. Such a pooler lends a server for one transaction, so a session of ours has
// nothing of its own between two of them: no prepared statement, no setting, no channel that it hears, no lock.

import { StackError } from '../failure.ts';

export const POOLER_VARIABLES = {
  SLUICE_POOLER:
    'transaction where DB1_URL and DB2_URL lead through a pooler in transaction mode (docs/run_on_your_postgres.md); not set by default',
  'DB1_DIRECT_URL, DB2_DIRECT_URL':
    'with SLUICE_POOLER: the addresses without the pooler, for migrations and so that workers are woken; optional',
};

type Env = Readonly<Record<string, string | undefined>>;

export function isPooled(env: Env = process.env): boolean {
  const given = env.SLUICE_POOLER;
  if (!given) return false;
  if (given !== 'transaction')
    throw new StackError(
      `SLUICE_POOLER is "${given}"; it must be transaction`,
      'a pooler in session mode needs no setting: leave it out',
    );
  return true;
}

const DIRECT = { DB1_URL: 'DB1_DIRECT_URL', DB2_URL: 'DB2_DIRECT_URL' } as const;

/** The address where a session lasts: the given one without a pooler; undefined where none is known. */
export function directUrl(url: string, env: Env = process.env): string | undefined {
  if (!isPooled(env)) return url;
  const [, direct = ''] = Object.entries(DIRECT).find(([name]) => env[name] === url) ?? [];
  return env[direct] || undefined;
}

/** For what needs a session. Throws where none is known. */
export function requireDirectUrl(url: string, env: Env = process.env): string {
  const direct = directUrl(url, env);
  if (direct === undefined)
    throw new StackError(
      'SLUICE_POOLER is transaction, and this needs a session, which such a pooler does not give',
      'set DB1_DIRECT_URL and DB2_DIRECT_URL to the addresses without the pooler; of cells, name them in SLUICE_CELLS and leave SLUICE_POOLER out',
    );
  return direct;
}
