// How `sluice webhooks` reaches DB2: directly, so that it works at night when the server is down.

import { createOperatorStore, type OperatorStore } from '#core/webhook/operators.ts';
import { createDatabase } from '../db/database.ts';
import { createLog } from '../log.ts';
import { StackError } from '../stack/failure.ts';
import { explained } from './explained.ts';
import { readDatabaseUrls, readOperator } from './operator.ts';

const CONNECTIONS = 1;

export async function withStore<Result>(work: (store: OperatorStore) => Promise<Result>): Promise<Result> {
  const database = createDatabase({
    url: readUrl(process.env),
    max: CONNECTIONS,
    applicationName: 'sluice-webhooks',
    log: createLog(),
  });
  try {
    return await work(createOperatorStore((name, args) => database.call(`webhook.${name}`, args)));
  } catch (error) {
    throw explained(error);
  } finally {
    await database.end();
  }
}

/** Who the audit log names. */
export function actor(): string {
  return readOperator(process.env) ?? 'operator';
}

function readUrl(env: NodeJS.ProcessEnv): string {
  const url = env.DB2_URL || env.DATABASE_URL || readDatabaseUrls(env).db2Url;
  if (!url)
    throw new StackError(
      'DB2_URL is not set, and no stack runs here',
      'set it, or start one with `npm start`',
    );
  return url;
}
