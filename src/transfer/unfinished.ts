import { StackError } from '../failure.ts';
import { withClient } from '../migrate/sql.ts';
import { isCell, lastImport } from './store.ts';

/**
 * An import that was killed between its two commits: DB2 has the file and no intake has it. Changes nothing. An import goes into an
 * intake that is new, so where the intakes are cells of a fleet it was finished, and the cell may have left since.
 */
export async function refuseUnfinishedImport(intakes: readonly string[], ledger: string): Promise<void> {
  const db2 = await withClient(ledger, lastImport);
  const looks = await Promise.all(
    intakes.map((url) =>
      withClient(url, async (client) => ({ has: await lastImport(client), isCell: await isCell(client) })),
    ),
  );
  if (looks.some((look) => look.isCell || look.has === db2)) return;
  throw new StackError(
    `an import has not finished: DB1 has ${looks[0]?.has ?? 'none'} and DB2 has ${db2 ?? 'none'}`,
    'run the same `npx sluice import <file>` again: it does what is left to do',
  );
}
