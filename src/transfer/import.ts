// A file into two new databases. Each is filled in one transaction, and both are full before the first commits, so that a
// row that one refuses changes neither. Between the two commits lies the one moment at which a kill leaves DB2 full and DB1
// empty: DB2's audit row says so, and a second run with the same file does the rest.

import type pg from 'pg';
import { StackError } from '../failure.ts';
import type { SideName } from '../migrate/sides.ts';
import { withClient } from '../migrate/sql.ts';
import type { Urls } from './export.ts';
import { type EndLine, type Row, readExport, type TableLine } from './file.ts';
import {
  beginImport,
  CHAIN_START,
  countRows,
  findHomes,
  type Home,
  insertRows,
  isImported,
  lockAgainstChanges,
  markImported,
  putFurnitureBack,
  raiseSequence,
  rebuildSlots,
  SLOT_CACHE,
  setFurnitureAside,
  startChain,
} from './store.ts';
import { DROPPED_COLUMNS, TABLES } from './tables.ts';

const ROWS_A_STATEMENT = 500;
const CHARS_A_STATEMENT = 4_000_000;

export type ImportResult = EndLine & {
  /** True where an earlier run had filled DB2 and this one did the rest. */
  wasContinued: boolean;
};

type Options = { actor: string; onRows(count: number): void };

/** `end` is what reading the whole file once has returned: nothing of a damaged file gets here. */
export async function importFile(
  urls: Urls,
  file: string,
  end: EndLine,
  options: Options,
): Promise<ImportResult> {
  return withClient(urls.db2, (db2) =>
    withClient(urls.db1, async (db1) => {
      const loaders = {
        db1: new Loader(db1, 'db1', end, options),
        db2: new Loader(db2, 'db2', end, options),
      };
      await loaders.db2.begin();
      await loaders.db1.begin();
      if (loaders.db1.wasImported) throw alreadyImported(file, loaders.db2.wasImported);
      const waiting = [loaders.db2, loaders.db1].filter(({ wasImported }) => !wasImported);
      for (const loader of waiting) await loader.makeRoom();
      await load(file, end, loaders);
      for (const loader of waiting) await loader.complete();
      for (const loader of waiting) await loader.commit();
      return { ...end, wasContinued: loaders.db2.wasImported };
    }),
  );
}

async function load(file: string, end: EndLine, loaders: Record<SideName, Loader>): Promise<void> {
  let loader = loaders.db1;
  const { sha256 } = await readExport(file, {
    async table(line) {
      await loader.flush();
      loader = loaders[line.database];
      loader.startTable(line);
    },
    row: (row) => loader.add(row),
    sequences: ({ database, sequences }) => loaders[database].raise(sequences),
  });
  await loader.flush();
  if (sha256 !== end.sha256)
    throw new StackError(`${file} was changed meanwhile`, 'nothing was imported; run it again');
}

function alreadyImported(file: string, both: boolean): StackError {
  return both
    ? new StackError(`${file} is already imported into these databases`, 'there is nothing left to do')
    : new StackError(
        `${file} is imported into this DB1, and not into this DB2`,
        'give both addresses of one pair of databases: is DB2_URL the right one?',
      );
}

/** Fills one database within one transaction. */
class Loader {
  wasImported = false;
  readonly #client: pg.Client;
  readonly #side: SideName;
  readonly #end: EndLine;
  readonly #options: Options;
  #homes: Home[] = [];
  #table: { name: string; home: Home; columns: string[]; kept: number[] } | undefined;
  #rows: Row[] = [];
  #chars = 0;
  readonly #inserted: Record<string, number> = {};

  constructor(client: pg.Client, side: SideName, end: EndLine, options: Options) {
    this.#client = client;
    this.#side = side;
    this.#end = end;
    this.#options = options;
  }

  async begin(): Promise<void> {
    await beginImport(this.#client);
    this.#homes = await findHomes(this.#client, TABLES[this.#side]);
    if (this.#homes.length < TABLES[this.#side].length)
      throw new StackError(
        `${this.#side.toUpperCase()} does not have Sluice's tables`,
        'run `npx sluice migrate` first',
      );
    this.wasImported = await isImported(this.#client, this.#end.sha256);
    if (!this.wasImported) await this.#refuseUnlessNew();
  }

  async #refuseUnlessNew(): Promise<void> {
    const found: string[] = [];
    for (const home of this.#homes) {
      const count = await countRows(this.#client, home, `not (${home.table.furniture ?? 'false'})`);
      if (count > 0) found.push(`${home.table.name} ${count}`);
    }
    if (found.length > 0)
      throw new StackError(
        `${this.#side.toUpperCase()} is not empty: ${found.join(', ')} rows`,
        'an import needs two databases that were just migrated: `npm run reset` makes such, or name new ones',
      );
  }

  /** Asks a second time, now that no other session can add rows until the commit. */
  async makeRoom(): Promise<void> {
    await lockAgainstChanges(this.#client, this.#homes);
    await this.#refuseUnlessNew();
    await setFurnitureAside(this.#client, this.#side, this.#homes);
  }

  startTable({ table, columns }: TableLine): void {
    const homes = [...this.#homes, CHAIN_START, ...(this.#side === 'db1' ? [SLOT_CACHE] : [])];
    const home = homes.find((each) => each.table.name === table);
    if (home === undefined)
      throw new StackError(
        `this Sluice has no table ${table}`,
        'import the file with the version that made it',
      );
    const kept = columns.flatMap((column, at) => (this.#takes(home, column) ? [at] : []));
    this.#table = { name: table, home, columns, kept };
    this.#inserted[table] = 0;
  }

  /** A column that the database computes itself is left to it. One that it does not know is a loss, and refused. */
  #takes(home: Home, name: string): boolean {
    const column = home.columns.find((each) => each.name === name);
    if (column !== undefined) return !column.isGenerated;
    if (DROPPED_COLUMNS.has(`${home.table.name}.${name}`)) return false;
    throw new StackError(
      `this Sluice has no column ${name} in ${home.table.name}, and the file has`,
      'import the file with the version that made it; if the column is your own, add it to the new database first',
    );
  }

  async add(row: Row): Promise<void> {
    if (this.wasImported) return;
    const { kept = [] } = this.#table ?? {};
    const values = kept.map((at) => row[at] ?? null);
    this.#rows.push(values);
    for (const value of values) this.#chars += value?.length ?? 0;
    if (this.#rows.length >= ROWS_A_STATEMENT || this.#chars >= CHARS_A_STATEMENT) await this.flush();
  }

  async flush(): Promise<void> {
    const rows = this.#rows;
    this.#rows = [];
    this.#chars = 0;
    if (this.#table === undefined || rows.length === 0) return;
    const { name, home, columns, kept } = this.#table;
    const names = kept.map((at) => columns[at] ?? '');
    const count = await insertRows(this.#client, home, names, rows);
    this.#inserted[name] = (this.#inserted[name] ?? 0) + count;
    this.#options.onRows(count);
  }

  async raise(sequences: Readonly<Record<string, string>>): Promise<void> {
    if (this.wasImported) return;
    for (const [name, value] of Object.entries(sequences)) {
      if (await raiseSequence(this.#client, name, value)) continue;
      throw new StackError(
        `this Sluice has no sequence ${name}`,
        'import the file with the version that made it',
      );
    }
  }

  /** What follows from the rows, the check that all of them are in, and the audit row. */
  async complete(): Promise<void> {
    for (const [table, count] of Object.entries(this.#inserted)) {
      const expected = this.#end.rows[`${this.#side}.${table}`];
      if (count !== expected)
        throw new Error(`${table}: ${count} rows inserted, and the file has ${expected}`);
    }
    await startChain(this.#client);
    await putFurnitureBack(this.#client, this.#homes);
    if (this.#side === 'db1') await rebuildSlots(this.#client);
    await markImported(this.#client, this.#end.sha256, this.#options.actor, { rows: this.#inserted });
  }

  async commit(): Promise<void> {
    await this.#client.query('commit');
  }
}
