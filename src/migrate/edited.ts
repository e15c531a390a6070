// A database whose migrations were edited since: told before either database is changed, with the ways out.

import { join } from 'node:path';
import type { Log } from '#core/ports.ts';
import { StackError } from '../failure.ts';
import { PROJECT_ROOT } from '../project_root.ts';
import { type EditedMigration, findEdited, listMigrations, recordedMigrations } from './recorded.ts';
import type { SideName } from './sides.ts';
import { withClient } from './sql.ts';

const EXPORT_FILE = 'sluice-export.jsonl';
export const TITLES: Readonly<Record<SideName, string>> = { db1: 'DB1 (intake)', db2: 'DB2 (ledger)' };

/** Whose databases they are decides how a person gets two empty ones. */
const WAYS_OUT = {
  embedded: [
    'Take the data along (docs/upgrade.md):',
    `  npx sluice export ${EXPORT_FILE}`,
    '  npm run reset',
    `  npx sluice import ${EXPORT_FILE}`,
    '  npm start',
    'Or start over without the data:',
    '  npm run reset',
    '  npm start',
  ],
  own: [
    'Take the data along (docs/upgrade.md). First:',
    `  npx sluice export ${EXPORT_FILE}`,
    'Then set DB1_URL and DB2_URL to two new, empty databases:',
    '  npx sluice migrate',
    `  npx sluice import ${EXPORT_FILE}`,
    'Or leave the data: `npx sluice migrate` on two new, empty databases starts over.',
  ],
};

export type Owner = keyof typeof WAYS_OUT;

/** Reads both records of migrations and refuses where one was edited. Changes nothing in either database. */
export async function refuseEdited(
  urls: Readonly<Record<SideName, string>>,
  owner: Owner,
  projectRoot = PROJECT_ROOT,
): Promise<void> {
  for (const side of ['db1', 'db2'] as const) await refuseSide(side, urls[side], owner, { projectRoot });
}

async function refuseSide(
  side: SideName,
  url: string,
  owner: Owner,
  { projectRoot, timeoutMs }: { projectRoot: string; timeoutMs?: number },
): Promise<void> {
  const recorded = await withClient(url, recordedMigrations, timeoutMs);
  const edited = findEdited(recorded, listMigrations(join(projectRoot, side)));
  if (edited.length > 0) throw refusal(TITLES[side], edited, owner);
}

/** A program that starts does not wait longer for a database that is silent. */
const LOOK_MS = 3_000;

/**
 * As refuseEdited, for a program that starts beside databases that it did not prepare. A database that is away, or does not
 * show this role its record, is passed over and the log says so: the program meets the same trouble itself, and handles it.
 */
export async function refuseEditedWhereSeen(
  urls: Readonly<Record<SideName, string>>,
  log: Log,
): Promise<void> {
  const look = { projectRoot: PROJECT_ROOT, timeoutMs: LOOK_MS };
  await Promise.all(
    (['db1', 'db2'] as const).map(async (side) => {
      try {
        await refuseSide(side, urls[side], 'own', look);
      } catch (error) {
        if (error instanceof StackError) throw error;
        log.warn('migrations were not compared', { database: side, cause: error });
      }
    }),
  );
}

export function refusal(title: string, edited: readonly EditedMigration[], owner: Owner): StackError {
  const [first, ...others] = edited;
  const here = first?.here === undefined ? 'it is not here' : `here ${first.here}`;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return new StackError(
    [
      `${title}: ${first?.file} differs from the one that was applied to this database (applied ${first?.applied}, ${here})${more}.`,
      'Before 1.0 a new version of Sluice edits its migrations in place, so it cannot change this database into its own.',
      'Neither database was changed.',
    ].join('\n'),
    WAYS_OUT[owner].join('\n'),
  );
}
