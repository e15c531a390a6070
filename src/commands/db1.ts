// How commands of the owner reach DB1: directly, because no role of the API may do what they do.

import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { explained } from './db2.ts';
import { readDatabaseUrls } from './operator.ts';

/** What a person can mend is thrown as two lines. */
export async function withDb1<Result>(work: (db1: Database) => Promise<Result>): Promise<Result> {
  const { db1Url: url } = readDatabaseUrls(process.env);
  if (!url)
    throw new StackError(
      'DB1_URL is not set, and no stack runs here',
      'set it, or start one with `npm start`',
    );
  const db1 = createDatabase({ url, max: 1, applicationName: 'sluice-cli', log: createLog() });
  try {
    return await work(db1);
  } catch (error) {
    throw explained(error, 'DB1');
  } finally {
    await db1.end();
  }
}
