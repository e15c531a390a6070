// How `calls` and `webhooks` reach DB2: directly, so that they work at night when the server is down.

import { blameOf, isSaidByDatabase, toHttpError } from '#core/failure.ts';
import { withRules } from '#core/rules.ts';
import { createOperatorStore, type OperatorStore } from '#core/webhook/operators.ts';
import type { Provider } from '#core/webhook/provider.ts';
import { minSecretChars, type SecretSource } from '#core/webhook/secrets.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { createSecretSource, SECRETS_FILE } from '../webhook/secret_source.ts';
import { secretsOf } from '../webhook/secret_users.ts';
import { readDatabaseUrls, readStackEnv, VARIABLES } from './operator.ts';

export const DB2_VARIABLES = {
  DB2_URL: 'Postgres address of the ledger (default: DATABASE_URL, then that of the stack in .sluice)',
  ...SECRETS_FILE,
  ...VARIABLES.operator,
};

/** What a person can mend is thrown as two lines. */
export async function withDb2<Result>(work: (db2: Database) => Promise<Result>): Promise<Result> {
  const url = readUrl(process.env);
  const db2 = createDatabase({ url, max: 1, applicationName: 'sluice-cli', log: createLog() });
  try {
    return await withRules(work(db2));
  } catch (error) {
    throw explained(error);
  } finally {
    await db2.end();
  }
}

function readUrl(env: NodeJS.ProcessEnv): string {
  const url = env.DB2_URL || env.DATABASE_URL || readDatabaseUrls(env).db2Url;
  if (url) return url;
  throw new StackError('DB2_URL is not set, and no stack runs here', 'set it, or start one with `npm start`');
}

/** What operators do with webhook endpoints and events, on DB2 itself. */
export function withStore<Result>(work: (store: OperatorStore) => Promise<Result>): Promise<Result> {
  return withDb2((db2) => work(createOperatorStore((name, args) => db2.call(`webhook.${name}`, args))));
}

/** Secrets as this command sees them: those of the stack in .sluice too. */
export function knownSecrets(): SecretSource {
  return createSecretSource(readStackEnv(process.env));
}

/** A secret that is named now has to be on the list, and its value here or in Vault, and long enough. */
export async function requireSecrets(names: readonly string[], provider?: Provider): Promise<void> {
  if (names.length === 0) return;
  const fault = await withDb2((db2) =>
    secretsOf(db2, knownSecrets()).faultOf(names, minSecretChars(provider)),
  );
  if (fault === undefined) return;
  throw new StackError(
    fault,
    "its value is looked for in DB2's Vault, in SLUICE_SECRETS_FILE and in the environment of this command",
  );
}

/** For commands that ask several databases: any of them may have refused. */
export const ANY_DATABASE = ['a database', 'DB1_URL, SLUICE_CELLS or DB2_URL'] as const;

/**
 * What a person can mend becomes two lines; everything else stays what it is. `variables`: those that give the addresses of the
 * databases that were asked.
 */
export function explained(error: unknown, database = 'DB2', variables = `${database}_URL`): unknown {
  if (error instanceof StackError) return error;
  const { kind, message, hint } = toHttpError(error);
  const said = error instanceof Error ? error.message : message;
  if (kind.code === 'database_unavailable')
    return new StackError(
      // A database that answers says best why it refuses: a wrong password, no such database.
      isSaidByDatabase(error) ? `${database} says: ${said}` : message,
      `is it running, and is ${variables} its address?`,
      error,
    );
  const blame = blameOf(error);
  if (blame === 'missing')
    return new StackError(
      `${database} lacks what this command asks for: ${said}`,
      'its migrations are missing: `sluice migrate` applies them, and `sluice doctor` names them',
      error,
    );
  if (blame === 'denied')
    return new StackError(
      `only the owner of ${database} may do this`,
      `give the owner's address as ${variables}`,
      error,
    );
  if (kind.code === 'internal') return error;
  // Our own functions say what was wrong, and what to do, in their own words.
  const own = blame === 'refused' ? (error as { hint?: string }) : undefined;
  return new StackError(own === undefined ? message : said, own?.hint ?? hint, error);
}
