// `sluice audit`: the heads of the chains of sealed audit rows, one in each database, to be kept elsewhere, and the check of every row.

import { readFileSync } from 'node:fs';
import { type ChainFault, describeFault, findFaults, type Head, readChain } from '../audit/chain.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { action, type Group } from './grammar.ts';
import { OPTION, readDatabaseUrls, VARIABLES } from './operator.ts';
import { formatTable } from './table.ts';

/** By the name of the database: db1 (or each cell), db2. */
type Heads = Readonly<Record<string, Head>>;
/** The name of the first cell while it was the only intake: heads that were saved then are its own. */
const ONLY_INTAKE = 'db1';

function databases(): { side: string; url: string }[] {
  const { cells, db2Url } = readDatabaseUrls(process.env);
  if (cells.length === 0 || !db2Url)
    throw new StackError(
      'DB1_URL and DB2_URL are not set, and no stack runs here',
      'set both, or start one with `npm start`',
    );
  const intakes = cells.map(({ name, url }) => ({
    side: cells.length > 1 ? `cell ${name}` : ONLY_INTAKE,
    url,
  }));
  return [...intakes, { side: 'db2', url: db2Url }];
}

async function eachSide<Result>(work: (side: string, db: Database) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (const { side, url } of databases()) {
    const db = createDatabase({ url, max: 1, applicationName: 'sluice-cli', log: createLog() });
    try {
      results.push(await work(side, db));
    } finally {
      await db.end();
    }
  }
  return results;
}

const heads = action({
  about: `Print the heads of the chains

Keep what --json prints where the owner of the databases cannot write. \`sluice audit check --heads FILE\` then also finds a chain
that was computed again.`,
  options: { json: OPTION.json },
  examples: ['sluice audit heads --json > heads.json'],
  async run({ json }) {
    const states = await eachSide(async (side, db) => ({ side, ...(await readChain(db)) }));
    if (json) {
      const kept = states.map(({ side, seals, head }) => [side, { seals, head }]);
      console.log(JSON.stringify(Object.fromEntries(kept)));
    } else {
      const rows = states.map(({ side, seals, unsealed, head }) => [
        side,
        String(seals),
        String(unsealed),
        head,
      ]);
      console.log(formatTable(['DATABASE', 'SEALED', 'NOT YET', 'HEAD'], rows));
    }
    return 0;
  },
});

const check = action({
  about: 'Check every sealed row of all audit logs, and name those that were changed, removed or added',
  options: {
    heads: { value: 'FILE', about: 'what `sluice audit heads --json` printed earlier' },
    json: OPTION.json,
  },
  examples: ['sluice audit check --heads heads.json'],
  async run({ heads: file, json }) {
    const saved: Heads = file === undefined ? {} : readHeads(file);
    const checked = await eachSide(async (side, db) => {
      const state = await readChain(db);
      return { side, sealed: state.seals, faults: await findFaults(db, state, saved[side]) };
    });
    if (json) console.log(JSON.stringify({ databases: checked }));
    else for (const { side, sealed, faults } of checked) console.log(said(side, sealed, faults));
    for (const { side } of file === undefined ? [] : checked)
      if (saved[side] === undefined)
        console.error(
          `warning: ${file} has no head of ${side}; a chain that was computed again is not found there`,
        );
    return checked.every(({ faults }) => faults.length === 0) ? 0 : 1;
  },
});

function said(side: string, sealed: number, faults: readonly ChainFault[]): string {
  if (faults.length === 0) return `${side}: ${sealed} sealed rows are what they were.`;
  return faults.map((fault) => `${side}: ${describeFault(fault)}`).join('\n');
}

/** Those of our databases that the file has; it has at least one. A cell that came later has none yet. */
function readHeads(file: string): Heads {
  try {
    const kept: Heads = JSON.parse(readFileSync(file, 'utf8'));
    const heads: Record<string, Head> = {};
    for (const [at, { side }] of databases().entries()) {
      const head = kept[side] ?? (at === 0 ? kept[ONLY_INTAKE] : undefined);
      if (head === undefined) continue;
      if (typeof head.head !== 'string' || !Number.isSafeInteger(head.seals))
        throw new Error(`what it has of ${side} is not a head`);
      heads[side] = head;
    }
    if (Object.keys(heads).length === 0) throw new Error('it has no head of these databases');
    return heads;
  } catch (error) {
    throw new StackError(
      `${file} cannot be read: ${error instanceof Error ? error.message : error}`,
      'give a file that `sluice audit heads --json` printed',
      error,
    );
  }
}

export const command: Group = {
  about: 'The chains of sealed audit rows: their heads, and whether every row is unchanged',
  environment: { ...VARIABLES.databases, ...VARIABLES.operator },
  exits: ['when every row is unchanged', 'when one is not'],
  actions: { heads, check },
};
