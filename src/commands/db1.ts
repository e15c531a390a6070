// How commands of the owner reach the intakes: directly, because no role of the API may do what they do.

import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { type OpenCell, operatorsCell } from '../fleet/operate.ts';
import { createLog } from '../log.ts';
import { explained } from './db2.ts';
import { readDatabaseUrls } from './operator.ts';

export interface Intake extends OpenCell {
  readonly db: Database;
}

/** All cells, in their order. What a person can mend is thrown as two lines. */
export async function withIntakes<Result>(
  work: (intakes: readonly Intake[]) => Promise<Result>,
): Promise<Result> {
  const { cells } = readDatabaseUrls(process.env);
  if (cells.length === 0)
    throw new StackError(
      'DB1_URL is not set, and no stack runs here',
      'set it, or start one with `npm start`',
    );
  const log = createLog();
  const intakes = cells.map(({ name, url }): Intake => {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-cli', log });
    return { name, db, call: (functionName, args) => db.call(`public.${functionName}`, args) };
  });
  try {
    return await work(intakes);
  } catch (error) {
    throw explained(error, 'DB1');
  } finally {
    await Promise.all(intakes.map(({ db }) => db.end()));
  }
}

/** The intake in which the operators stand. */
export function withOperators<Result>(work: (db1: Database) => Promise<Result>): Promise<Result> {
  return withIntakes(async (intakes) => work((await operatorsCell(intakes)).db));
}
