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

Both databases must be newly migrated, and hold only what \`npm start\` or the seed put there. Checks the whole file
first. Then imports all of it, with one audit row in each database, or nothing. Afterwards pools go on selling, a repeated claim
gets the same answer, and a repeated event is a duplicate.
If a run was killed, run it again: it does the rest. It refuses a second import.`,
  args: '<file>',
  options: { json: OPTION.json },
  environment: {
    'DB1_URL, DB2_URL':
      'the two new databases (see: sluice migrate; default: the stack in .sluice; if it does not run, the command makes its databases)',
    SLUICE_DIR: 'where the stack lives (default .sluice)',
    ...VARIABLES.operator,
  },
  examples: [
    'sluice import sluice-export.jsonl',
    'DB1_URL=postgres://… DB2_URL=postgres://… sluice import sluice-export.jsonl --json',
  ],
  run: ({ json }, [file]) => run(file, json),
});
