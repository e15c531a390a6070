// What it takes to make an existing table ours: the steps, in the order in which they are done, and what stands in the way.
// Looking changes nothing.

import type pg from 'pg';
import type { Obstacle } from '../survey.ts';
import { type FoundColumn, type FoundTable, findTable, labelsOf } from './catalog.ts';
import {
  ADOPTED_TABLES,
  type AdoptedColumn,
  type AdoptedTable,
  REPLACED_FUNCTIONS,
  STATUS_OF,
  STATUS_TYPE,
  STATUSES,
} from './tables.ts';

export interface Step {
  readonly what: string;
  readonly sql: string;
}

export interface Adoption {
  readonly steps: readonly Step[];
  readonly obstacles: readonly Obstacle[];
}

const EXAMPLES = 5;
/** What stands for the old one beside ours. */
const before = (name: string): string => `${name}_before`;

/** All that the ledger would take over of this database. */
export async function lookAtAdoption(client: pg.Client): Promise<Adoption> {
  // Types and tables are told by names that the path shortens.
  await client.query(`select set_config('search_path', 'public', false)`);
  const labels = await labelsOf(client, STATUS_TYPE);
  const hasOwnStatus = labels?.join() === STATUSES.join();
  const found: Adoption[] = [];
  for (const table of ADOPTED_TABLES) {
    const there = await findTable(client, table.name);
    if (there !== undefined) found.push(await lookAt(client, table, there, hasOwnStatus));
  }
  const steps = found.flatMap((one) => one.steps);
  const isTyped = labels !== undefined || steps.some(({ sql }) => sql.includes(STATUS_TYPE));
  return {
    // The functions first: their signatures name the type.
    steps: [...(await functionSteps(client)), ...(isTyped ? typeSteps(labels) : []), ...steps],
    obstacles: found.flatMap(({ obstacles }) => obstacles),
  };
}

async function lookAt(
  client: pg.Client,
  table: AdoptedTable,
  there: FoundTable,
  hasOwnStatus: boolean,
): Promise<Adoption> {
  if (there.kind !== 'r')
    return obstacle(`${table.name} is not a plain table`, 'rename it: Sluice makes its own');
  if (!there.isOwned)
    return obstacle(
      `${table.name} belongs to ${there.owner}`,
      `connect as ${there.owner}, or as a member of it`,
    );
  const look = new TableLook(client, table, there, hasOwnStatus);
  await look.run();
  return look;
}

const obstacle = (what: string, hint: string): Adoption => ({ steps: [], obstacles: [{ what, hint }] });

class TableLook implements Adoption {
  readonly steps: Step[] = [];
  readonly obstacles: Obstacle[] = [];
  readonly #client: pg.Client;
  readonly #table: AdoptedTable;
  readonly #there: FoundTable;
  readonly #found: ReadonlyMap<string, FoundColumn>;
  readonly #hasOwnStatus: boolean;

  constructor(client: pg.Client, table: AdoptedTable, there: FoundTable, hasOwnStatus: boolean) {
    this.#hasOwnStatus = hasOwnStatus;
    this.#client = client;
    this.#table = table;
    this.#there = there;
    this.#found = new Map(there.columns.map((column) => [column.name, column]));
  }

  async run(): Promise<void> {
    const { columns } = this.#table;
    const misfits = columns.filter((column) => this.#isMisfit(column));
    for (const { name } of misfits)
      this.#alter(
        `column ${name} is of another type: it is kept as ${before(name)}`,
        `rename column ${name} to ${before(name)}`,
      );
    for (const column of columns) this.#convert(column);
    const added = columns.filter((column) => !this.#isKept(column));
    for (const { name, type, isIdentity } of added)
      this.#alter(
        `column ${name} ${type} is added`,
        `add column ${name} ${type}${isIdentity ? ' generated always as identity' : ''}`,
      );
    await this.#fill(added);
    for (const column of columns) this.#finishColumn(column, added.includes(column));
    this.#letOthersBeEmpty();
    this.#addKeys(misfits);
    await this.#findTrouble(added);
  }

  #alter(what: string, sql: string): void {
    const { name } = this.#table;
    this.steps.push({ what: `${name}: ${what}`, sql: `alter table ${name} ${sql}` });
  }

  #isMisfit(column: AdoptedColumn): boolean {
    const found = this.#found.get(column.name);
    return found !== undefined && this.#conversion(column, found) === undefined;
  }

  /** How a value becomes one of ours: '' as it is, undefined not at all. */
  #conversion(column: AdoptedColumn, found: FoundColumn): string | undefined {
    // One that counts by itself stays; any other number cannot be made to.
    if (column.isIdentity) return found.type === column.type && found.isFilled ? '' : undefined;
    if (column.type !== 'webhook_event_status') return conversion(column, found);
    return this.#hasOwnStatus && found.type === column.type ? '' : STATUS_CONVERSION;
  }

  /** It is there, as it has to be or as it can be made. */
  #isKept(column: AdoptedColumn): boolean {
    return this.#found.has(column.name) && !this.#isMisfit(column);
  }

  #convert(column: AdoptedColumn): void {
    const found = this.#found.get(column.name);
    const using = found && this.#conversion(column, found);
    if (found === undefined || using === undefined || using === '') return;
    if (column.name === 'status') this.#freeStatus();
    if (found.isFilled)
      this.#alter(`column ${column.name} loses its default`, `alter ${column.name} drop default`);
    const type = column.name === 'status' ? STATUS_TYPE : column.type;
    this.#alter(
      `column ${column.name} becomes ${column.type} (it is ${found.type})`,
      `alter ${column.name} type ${type} using ${using}`,
    );
  }

  /** What compares the status with values of its old type cannot stay. */
  #freeStatus(): void {
    for (const { name, kind, columns } of this.#there.constraints)
      if (kind === 'c' && columns.includes('status'))
        this.#alter(`constraint ${name} goes: the type says it`, `drop constraint "${name}"`);
    for (const { name, text } of this.#there.choosyIndexes)
      if (/\bstatus\b/.test(text))
        this.steps.push({
          what: `${this.#table.name}: index ${name} goes: it compares the status with values of its old type`,
          sql: `drop index ${name}`,
        });
  }

  async #fill(added: readonly AdoptedColumn[]): Promise<void> {
    const filled: AdoptedColumn[] = [];
    for (const column of this.#table.columns)
      if (column.fill !== undefined && (added.includes(column) || (await this.#hasNulls(column))))
        filled.push(column);
    if (filled.length === 0) return;
    const values = filled.map((column) => `${this.#valueOf(column)} as ${column.name}`);
    const { name } = this.#table;
    this.steps.push({
      what: `${name}: rows that have no ${filled.map((column) => column.name).join(', ')} get a value`,
      sql: `update ${name} t set ${filled.map((column) => `${column.name} = f.${column.name}`).join(', ')}
        from (select ctid, ${values.join(', ')} from ${name}) f where f.ctid = t.ctid`,
    });
  }

  #valueOf({ name, type, fill, from = [] }: AdoptedColumn): string {
    const source = from.find((one) => this.#found.has(one));
    const theirs = type === 'text' ? `left(nullif(${source}::text, ''), 200)` : `${source}::${type}`;
    const cast = name === 'status' ? STATUS_TYPE : type;
    return `coalesce(${name}, ${source === undefined ? '' : `${theirs}, `}(${fill})::${cast})`;
  }

  async #hasNulls(column: AdoptedColumn): Promise<boolean> {
    const found = this.#found.get(column.name);
    if (!column.isRequired || found === undefined || found.isRequired) return false;
    const { rows } = await this.#client.query(
      `select exists (select from ${this.#table.name} where ${column.name} is null) as has_nulls`,
    );
    return rows[0].has_nulls;
  }

  #finishColumn(column: AdoptedColumn, isNew: boolean): void {
    const { name, isIdentity } = column;
    const found = isNew ? undefined : this.#found.get(name);
    const isConverted = found !== undefined && this.#conversion(column, found) !== '';
    if (column.default !== undefined && (found?.isFilled !== true || isConverted))
      this.#alter(`column ${name} gets a default`, `alter ${name} set default ${column.default}`);
    if (column.isRequired && found?.isRequired !== true && !isIdentity)
      this.#alter(`column ${name} becomes not null`, `alter ${name} set not null`);
  }

  /** Sluice fills its own columns only. */
  #letOthersBeEmpty(): void {
    const ours = new Set(
      this.#table.columns.filter((column) => this.#isKept(column)).map(({ name }) => name),
    );
    for (const { name, isRequired, isFilled } of this.#there.columns) {
      if (!isRequired || isFilled || ours.has(name)) continue;
      if (this.#table.optional?.includes(name))
        this.#alter(`column ${name} may be null`, `alter ${name} drop not null`);
      else
        this.obstacles.push({
          what: `${this.#table.name}.${name} is not null and has no default: Sluice cannot add rows`,
          hint: `alter table ${this.#table.name} alter ${name} drop not null; or give it a default`,
        });
    }
  }

  #addKeys(misfits: readonly AdoptedColumn[]): void {
    const { unique, checks, tooNarrow } = this.#table;
    for (const { columns, constraint, index } of this.#there.keys) {
      if (!tooNarrow?.includes(columns.join())) continue;
      const what = `(${columns.join(', ')}) stops being unique by itself`;
      if (constraint !== null) this.#alter(what, `drop constraint "${constraint}"`);
      else this.steps.push({ what: `${this.#table.name}: ${what}`, sql: `drop index ${index}` });
    }
    const lost = new Set(misfits.map(({ name }) => name));
    const constraints = this.#there.constraints.map(({ name }) => name);
    const keys = this.#there.keys.filter(({ columns }) => !columns.some((name) => lost.has(name)));
    if (!keys.some(({ columns, constraint }) => constraint !== null && columns.join() === 'id')) {
      const hasPrimary = this.#there.keys.some(({ isPrimary }) => isPrimary);
      this.#alter('id becomes a key', `add ${hasPrimary ? 'unique' : 'primary key'} (id)`);
    }
    for (const [key, { columns, isIndex }] of Object.entries(unique)) {
      if (isIndex || constraints.includes(key)) continue;
      const same = keys.find((one) => one.columns.join() === columns.join());
      const what = `(${columns.join(', ')}) is unique: ${key}`;
      if (same?.constraint != null) this.#alter(what, `rename constraint "${same.constraint}" to ${key}`);
      else if (same !== undefined)
        this.#alter(what, `add constraint ${key} unique using index ${same.index.replace(/^.*\./, '')}`);
      else this.#alter(what, `add constraint ${key} unique (${columns.join(', ')})`);
    }
    for (const [key, expression] of Object.entries(checks))
      if (!constraints.includes(key))
        this.#alter(`${expression}: ${key}`, `add constraint ${key} check (${expression})`);
  }

  async #findTrouble(added: readonly AdoptedColumn[]): Promise<void> {
    const { name, columns, unique, checks } = this.#table;
    for (const { name: key, kind, columns: keyed } of this.#there.constraints)
      if (kind === 'f' && keyed.some((one) => columns.some((column) => column.name === one)))
        this.obstacles.push({
          what: `${name} has a foreign key on ${keyed.join(', ')}, and Sluice adds rows with values of its own`,
          hint: `alter table ${name} drop constraint "${key}"`,
        });
    for (const column of columns) {
      if (!column.isRequired || column.fill !== undefined || column.isIdentity) continue;
      if (added.includes(column))
        this.obstacles.push({
          what: `${name} has no column ${column.name} of type ${column.type}${column.means ? `: ${column.means}` : ''}`,
          hint: `add it and fill it, or rename the table: Sluice makes its own`,
        });
      else if (await this.#hasNulls(column))
        this.obstacles.push({
          what: `${name}: rows have no ${column.name}`,
          hint: `delete from ${name} where ${column.name} is null; or fill it`,
        });
    }
    const status = columns.find((column) => column.name === 'status');
    if (status !== undefined && this.#isKept(status)) await this.#findStrangeStatus();
    if (this.obstacles.length > 0) return;
    for (const { columns: key, among } of Object.values(unique)) await this.#findDuplicates(key, among);
    for (const expression of Object.values(checks)) {
      const broken = await this.#count(`not (${expression})`);
      if (broken > 0)
        this.obstacles.push({
          what: `${name}: ${broken} rows break the rule ${expression}`,
          hint: 'mend or delete these rows, then run again',
        });
    }
  }

  async #findStrangeStatus(): Promise<void> {
    const { name } = this.#table;
    const { rows } = await this.#client.query(
      `select distinct status::text as status from ${name} where lower(status::text) <> all ($1) limit ${EXAMPLES}`,
      [Object.keys(STATUS_OF)],
    );
    if (rows.length > 0)
      this.obstacles.push({
        what: `${name} has a status that Sluice does not know: ${rows.map(({ status }) => status).join(', ')}`,
        hint: `set it to one of ${Object.keys(STATUS_OF).join(', ')}`,
      });
  }

  async #findDuplicates(key: readonly string[], among = 'true'): Promise<void> {
    const { name } = this.#table;
    const names = key.join(', ');
    const { rows } = await this.#client.query(
      `select count(*) over ()::int as keys, ${names}, count(*)::int as times
       from ${this.#rows()} where ${among} group by ${names} having count(*) > 1 order by ${names} limit ${EXAMPLES}`,
    );
    if (rows.length === 0) return;
    const examples = rows.map((row) => `${key.map((column) => row[column]).join(' ')} (${row.times} rows)`);
    this.obstacles.push({
      what: `${name} has ${rows[0].keys} duplicates of (${names}): ${examples.join(', ')}${rows[0].keys > EXAMPLES ? ', …' : ''}`,
      hint: `keep one row of each (${names}) and delete the others, then run again: which one counts is yours to say`,
    });
  }

  async #count(condition: string): Promise<number> {
    const { rows } = await this.#client.query(
      `select count(*)::int as count from ${this.#rows()} where ${condition}`,
    );
    return rows[0].count;
  }

  /** The table as it will be, as far as keys and rules look at it. */
  #rows(): string {
    const { name, columns } = this.#table;
    const now = columns.map((column) => {
      const found = this.#found.get(column.name);
      const using = found && this.#conversion(column, found);
      if (column.name === 'status') return found === undefined ? 'null as status' : 'status::text as status';
      return using === undefined
        ? `null::${column.type} as ${column.name}`
        : `${using === '' ? column.name : using} as ${column.name}`;
    });
    const later = columns.map((column) =>
      column.fill === undefined || column.name === 'arrival' || column.name === 'status'
        ? column.name
        : `coalesce(${column.name}, (${column.fill})::${column.type}) as ${column.name}`,
    );
    return `(select ${later.join(', ')} from (select ${now.join(', ')} from ${name}) n) r`;
  }
}

function conversion({ name, type }: AdoptedColumn, found: FoundColumn): string | undefined {
  if (found.type === type) return '';
  const from = found.type.replace(/\(.*\)/, '');
  return CONVERTED_FROM[type]?.includes(from) ? `${name}${CASTS[type] ?? `::${type}`}` : undefined;
}

const CONVERTED_FROM: Readonly<Record<string, readonly string[]>> = {
  text: ['character varying', 'character', 'uuid', 'name', 'citext'],
  integer: ['smallint', 'bigint'],
  bigint: ['smallint', 'integer'],
  'timestamp with time zone': ['timestamp without time zone'],
  jsonb: ['json'],
};
/** Times without a zone are taken for UTC, whatever the session's zone is. */
const CASTS: Readonly<Record<string, string>> = { 'timestamp with time zone': ` at time zone 'UTC'` };

const STATUS_CONVERSION = `(case lower(status::text) ${Object.entries(STATUS_OF)
  .map(([theirs, ours]) => `when '${theirs}' then '${ours}'`)
  .join(' ')} end)::${STATUS_TYPE}`;

function typeSteps(labels: readonly string[] | undefined): Step[] {
  if (labels?.join() === STATUSES.join()) return [];
  const name = before(STATUS_TYPE.replace('public.', ''));
  const rename = {
    what: `type ${STATUS_TYPE} has other values: it is kept as ${name}`,
    sql: `alter type ${STATUS_TYPE} rename to ${name}`,
  };
  const make = {
    what: `type ${STATUS_TYPE} is made`,
    sql: `create type ${STATUS_TYPE} as enum (${STATUSES.map((status) => `'${status}'`).join(', ')})`,
  };
  return labels === undefined ? [make] : [rename, make];
}

async function functionSteps(client: pg.Client): Promise<Step[]> {
  const { rows } = await client.query(
    `select p.oid::regprocedure::text as signature from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname || '.' || p.proname = any ($1) order by 1`,
    [REPLACED_FUNCTIONS],
  );
  return rows.map(({ signature }) => ({
    what: `function ${signature} makes room for the one of Sluice`,
    sql: `drop function ${signature}`,
  }));
}
