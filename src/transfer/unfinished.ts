import { StackError } from '../failure.ts';
import { withClient } from '../migrate/sql.ts';
import type { Urls } from './export.ts';
import { lastImport } from './store.ts';

/** An import that was killed between its two commits: DB2 has the file and DB1 has not. Changes nothing. */
export async function refuseUnfinishedImport(urls: Urls): Promise<void> {
  const [db1, db2] = await Promise.all([urls.db1, urls.db2].map((url) => withClient(url, lastImport)));
  if (db1 === db2) return;
  throw new StackError(
    `an import has not finished: DB1 has ${db1 ?? 'none'} and DB2 has ${db2 ?? 'none'}`,
    'run the same `npx sluice import <file>` again: it does what is left to do',
  );
}
