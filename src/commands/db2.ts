// How `calls` and `webhooks` reach DB2: directly, so that they work at night when the server is down.

import { withRules } from '#core/rules.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { explained } from './explained.ts';
import { readDatabaseUrls } from './operator.ts';

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
