// `sluice import`: an export into two new databases.

import { readExport } from '../transfer/file.ts';
import { importFile } from '../transfer/import.ts';
import { rowTable } from './export.ts';
import { action } from './grammar.ts';
import { actor, OPTION, VARIABLES } from './operator.ts';
import { startProgress } from './progress.ts';
import { withNewDatabases } from './transfer_place.ts';

async function run(file: string, asJson: boolean): Promise<number> {
  // A damaged file is refused before a database is looked for.
  const end = await readExport(file);
  const total = Object.values(end.rows).reduce((sum, count) => sum + count, 0);
  const { rows, sha256, wasContinued } = await withNewDatabases(process.env, async (urls) => {
    const progress = startProgress(total, 'rows');
    try {
      return await importFile(urls, file, end, { actor: actor(), onRows: progress.advance });
    } finally {
      progress.end();
    }
  });
  if (asJson) console.log(JSON.stringify({ file, sha256, rows, continued: wasContinued }));
  else {
    const news = wasContinued ? 'DB2 had it from an earlier run; DB1 has it now.' : 'Both databases have it.';
    console.log(`${rowTable(rows)}\nImported ${file}. ${news}`);
  }
  return 0;
}

export const command = action({
  about: `Put an exported file into two new databases

Both databases were just migrated and hold nothing but what \`npm start\` or the seed put there. Checks the whole file
first; then all of it is imported, with one audit row in each database, or nothing. Pools sell on, a claim that is sent
again gets the same answer, and an event that is delivered again is a duplicate.
A run that was killed can be run again: it does what is left to do. A second import is refused.`,
  args: '<file>',
  options: { json: OPTION.json },
  environment: {
    'DB1_URL, DB2_URL':
      'the two new databases (see: sluice migrate); without them the stack in .sluice, whose databases are made for it where it does not run',
    SLUICE_DIR: 'where the stack lives (default .sluice)',
    ...VARIABLES.operator,
  },
  examples: [
    'sluice import sluice-export.jsonl',
    'DB1_URL=postgres://… DB2_URL=postgres://… sluice import sluice-export.jsonl --json',
  ],
  run: ({ json }, [file]) => run(file, json),
});
