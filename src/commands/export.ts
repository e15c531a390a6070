// `sluice export`: everything that must outlive a database, in one file.

import { connectedPrograms, countAll, exportDatabases } from '../transfer/export.ts';
import { action } from './grammar.ts';
import { OPTION } from './operator.ts';
import { startProgress } from './progress.ts';
import { formatTable } from './table.ts';
import { withOldDatabases } from './transfer_place.ts';

async function run(file: string, asJson: boolean): Promise<number> {
  const { rows, sha256 } = await withOldDatabases(process.env, async (urls) => {
    const programs = await connectedPrograms(urls);
    if (programs.length > 0)
      console.error(
        `warning: ${programs.join(', ')} connected; stop servers and workers for an export in which both agree`,
      );
    const progress = startProgress(process.stderr.isTTY ? await countAll(urls) : 0, 'rows');
    try {
      return await exportDatabases(urls, file, progress.advance);
    } finally {
      progress.end();
    }
  });
  if (asJson) console.log(JSON.stringify({ file, sha256, rows }));
  else console.log(`${rowTable(rows)}\nExported to ${file}. Next: docs/upgrade.md`);
  return 0;
}

export function rowTable(rows: Readonly<Record<string, number>>): string {
  return formatTable(
    ['DATABASE', 'WHAT', 'ROWS'],
    Object.entries(rows).map(([name, count]) => [...name.split('.'), String(count)]),
  );
}

export const command = action({
  about: `Write both databases into one file

Writes a new file that only you can read: pools, slots, claims, messages, dead letters, tickets, endpoints, sites, events,
payments, credits, side effects, calls and both audit logs. It holds names of users and what providers sent. It holds the
names of secrets, and no values. The export changes nothing, and reads databases of earlier versions too.
\`sluice import\` reads the file into new databases (docs/upgrade.md).

Stop servers and workers first. What they do during the export may be missing from one database's part of the file. A
warning names those that are connected.`,
  args: '<file>',
  options: { json: OPTION.json },
  environment: {
    'DB1_URL, DB2_URL':
      'the intake and the ledger (default: the stack in .sluice; if it does not run, the command starts its databases and stops them again)',
    SLUICE_DIR: 'where the stack lives (default .sluice)',
  },
  examples: ['sluice export sluice-export.jsonl'],
  run: ({ json }, [file]) => run(file, json),
});
