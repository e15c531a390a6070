// The statements of export and import. They copy whole tables by what the catalog says, so that one program reads the
// schemas of several versions: functions in the database could not be called on a database that was made without them.

import type pg from 'pg';
import { quoteName } from '../db/statement.ts';
import { type SideName, sideOf } from '../migrate/sides.ts';
import type { Row } from './file.ts';
import type { CarriedTable } from './tables.ts';

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly isGenerated: boolean;
  readonly isIdentity: boolean;
}

/** A table as it stands in one database. */
export interface Home {
  readonly table: CarriedTable;
  /** Schema and name, ready for a statement. */
  readonly path: string;
  readonly columns: readonly Column[];
}

/** Texts that read back as the same values in any session; no timeout of the server's ends a long copy. */
const SAME_TEXT = `
  set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
  set local bytea_output = 'hex'; set local extra_float_digits = 1; set local search_path = '';
  set local synchronize_seqscans = off; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0`;

const ROWS_A_PAGE = 1_000;
/** A row holds at most a body of 1 MB, as bytes in hex and as JSON: 20 rows are about 60 MB. */
const WIDE_ROWS_A_PAGE = 20;
/** A person who forgot an open transaction is told so, not waited for. */
const LOCK_TIMEOUT_MS = 30_000;

/** One view of the whole database, which changes meanwhile do not touch. */
export async function beginSnapshot(client: pg.Client): Promise<void> {
  await client.query('begin isolation level repeatable read read only');
  await client.query(SAME_TEXT);
}

export async function beginImport(client: pg.Client): Promise<void> {
  await client.query('begin');
  await client.query(`${SAME_TEXT}; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
}

/** Where the tables stand in this database; those that it does not have are left out. */
export async function findHomes(client: pg.Client, tables: readonly CarriedTable[]): Promise<Home[]> {
  const { rows } = await client.query(
    `select h.place, a.attname as name, pg_catalog.format_type(a.atttypid, a.atttypmod) as type,
       a.attgenerated <> '' as "isGenerated", a.attidentity <> '' as "isIdentity"
     from unnest($1::text[]) as h (place)
     join pg_catalog.pg_attribute a on a.attrelid = pg_catalog.to_regclass(h.place)
     where a.attnum > 0 and not a.attisdropped
     order by a.attnum`,
    [tables.flatMap(({ homes }) => homes)],
  );
  return tables.flatMap((table) => {
    const place = table.homes.find((home) => rows.some((row) => row.place === home));
    if (place === undefined) return [];
    const columns = rows.filter((row) => row.place === place);
    return [{ table, path: place.split('.').map(quoteName).join('.'), columns }];
  });
}

export async function countRows(client: pg.Client, { path }: Home, condition = 'true'): Promise<number> {
  const { rows } = await client.query(`select count(*) as n from ${path} where ${condition}`);
  return Number(rows[0].n);
}

/** Page by page, in the order in which the rows lie. Generated columns are left out. */
export async function* readRows(client: pg.Client, home: Home): AsyncGenerator<Row[]> {
  const list = home.columns
    .filter(({ isGenerated }) => !isGenerated)
    .map(({ name }) => `${quoteName(name)}::text`);
  yield* readPages(
    client,
    `select ${list.join(', ')} from ${home.path}`,
    home.table.isWide ? WIDE_ROWS_A_PAGE : ROWS_A_PAGE,
  );
}

/**
 * What the slot cache knows and the manifest does not: the place in the line of slots that were freed, and, as null, slots that
 * were deleted while a claim held them. Nothing of a pool whose cache a crash has emptied.
 */
export async function* readSlotCache(client: pg.Client): AsyncGenerator<Row[]> {
  yield* readPages(
    client,
    `select m.slot_id::text, s.sale_order::text from public.slot_manifest m
     join intake.pool_marks p on p.pool_id = m.pool_id
     left join public.inventory_slots s on s.id = m.slot_id
     where s.sale_order is distinct from m.sale_order`,
    ROWS_A_PAGE,
  );
}

/** Where an import keeps that list until the slots are rebuilt. */
export const SLOT_CACHE: Home = {
  table: { name: 'slot_cache', homes: [] },
  path: 'pg_temp.slot_cache',
  columns: [
    { name: 'slot_id', type: 'uuid', isGenerated: false, isIdentity: false },
    { name: 'sale_order', type: 'bigint', isGenerated: false, isIdentity: false },
  ],
};

/** After which row the chain of the audit log begins: rows before it were adopted, and no seal covers them. */
export const CHAIN_START: Home = {
  table: { name: 'chain_start', homes: ['audit.chain'] },
  path: 'pg_temp.chain_start',
  columns: [{ name: 'begins_after', type: 'bigint', isGenerated: false, isIdentity: false }],
};

/** No row of a version that had no chain. */
export async function* readChainStart(client: pg.Client): AsyncGenerator<Row[]> {
  const [home] = await findHomes(client, [CHAIN_START.table]);
  if (home !== undefined) yield* readPages(client, `select begins_after::text from ${home.path}`, 1);
}

async function* readPages(client: pg.Client, query: string, rowsAPage: number): AsyncGenerator<Row[]> {
  await client.query(`declare rows_to_copy no scroll cursor for ${query}`);
  for (;;) {
    const { rows } = await client.query({ text: `fetch ${rowsAPage} from rows_to_copy`, rowMode: 'array' });
    if (rows.length > 0) yield rows;
    if (rows.length < rowsAPage) break;
  }
  await client.query('close rows_to_copy');
}

/** The last number that each sequence gave; one that has given none is left out. */
export async function readSequences(
  client: pg.Client,
  names: readonly string[],
): Promise<Record<string, string>> {
  const { rows } = await client.query(
    `select s.schemaname || '.' || s.sequencename as name, s.last_value::text as value
     from pg_catalog.pg_sequences s
     where s.schemaname || '.' || s.sequencename = any ($1) and s.last_value is not null
     order by 1`,
    [names],
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** Never back: a number that this database has given is not given again. False where it has no such sequence. */
export async function raiseSequence(client: pg.Client, name: string, value: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `select pg_catalog.setval(pg_catalog.format('%I.%I', s.schemaname, s.sequencename)::regclass,
       greatest($2::bigint, coalesce(s.last_value, 1)))
     from pg_catalog.pg_sequences s
     where s.schemaname || '.' || s.sequencename = $1`,
    [name, value],
  );
  return rowCount === 1;
}

export async function insertRows(
  client: pg.Client,
  home: Home,
  names: readonly string[],
  rows: readonly Row[],
): Promise<number> {
  const columns = names.map(
    (name) => home.columns.find((column) => column.name === name) ?? missing(home, name),
  );
  const { columns: meant = {}, first, instead = {} } = home.table.absent ?? {};
  const absent = Object.entries(meant).filter(([name]) => !names.includes(name));
  const given = columns.map(({ name }) => quoteName(name));
  const target = [...given, ...absent.map(([name]) => quoteName(name))].join(', ');
  const values = [
    ...columns.map(
      ({ name, type }) => (absent.length > 0 && instead[name]) || `v.${quoteName(name)}::${type}`,
    ),
    ...absent.map(([, value]) => value),
  ].join(', ');
  const source = columns.map((_, at) => `$${at + 1}::text[]`).join(', ');
  const before = absent.length > 0 && first !== undefined ? `, before as (${first})` : '';
  const { rowCount } = await client.query(
    `with v as (select * from unnest(${source}) as v (${given.join(', ')}))${before}
     insert into ${home.path} (${target}) overriding system value select ${values} from v`,
    columns.map((_, at) => rows.map((row) => row[at] ?? null)),
  );
  return rowCount ?? 0;
}

function missing({ path }: Home, name: string): never {
  throw new Error(`${path} has no column ${name}`);
}

/** Until the end of the transaction all others may read these tables, and wait before they change them. */
export async function lockAgainstChanges(client: pg.Client, homes: readonly Home[]): Promise<void> {
  await client.query(`lock table ${homes.map(({ path }) => path).join(', ')} in share row exclusive mode`);
}

/** Takes the furniture of a new database out of the way, and remembers it for the end of the transaction. */
export async function setFurnitureAside(
  client: pg.Client,
  side: SideName,
  homes: readonly Home[],
): Promise<void> {
  const furnished = homes.filter(({ table }) => table.furniture !== undefined);
  for (const { table, path } of furnished)
    await client.query(
      `create temporary table ${quoteName(`kept_${table.name}`)} on commit drop as select * from ${path}`,
    );
  // The cache first: its trigger takes the slots off the manifest.
  if (side === 'db1')
    await client.query(
      `delete from public.inventory_slots; delete from intake.pool_marks; delete from intake.pool_totals;
       create temporary table slot_cache (slot_id uuid, sale_order bigint) on commit drop`,
    );
  // The one time that rows of the audit log go: those of a database that is new. Its chain begins where the file's does.
  await client.query(
    `set local sluice.audit_exception = 'import'; delete from audit.seals;
     update audit.chain set begins_after = 0, sealed_to = 0, seals = 0, head = sha256('');
     create temporary table chain_start (begins_after bigint not null, is_one boolean default true unique) on commit drop`,
  );
  for (const { path } of furnished.reverse()) await client.query(`delete from ${path}`);
}

/** Puts back what the file has not replaced, under new numbers where the database numbers the rows itself. */
export async function putFurnitureBack(client: pg.Client, homes: readonly Home[]): Promise<void> {
  for (const { table, path, columns } of homes.filter((home) => home.table.keepsFurniture)) {
    const list = columns
      .filter(({ name, isIdentity, isGenerated }) => !isIdentity && !isGenerated && name !== table.filledAnew)
      .map(({ name }) => quoteName(name));
    await client.query(
      `insert into ${path} (${list.join(', ')})
       select ${list.join(', ')} from pg_temp.${quoteName(`kept_${table.name}`)} on conflict do nothing`,
    );
  }
}

/** Rows that the exported log had adopted come before the chain here too. */
export async function startChain(client: pg.Client): Promise<void> {
  await client.query(
    `update audit.chain c set begins_after = s.begins_after, sealed_to = s.begins_after from pg_temp.chain_start s`,
  );
}

/** The slot cache and its totals from the manifest and the claims, then what only the old cache knew. */
export async function rebuildSlots(client: pg.Client): Promise<void> {
  await client.query(
    `insert into intake.pool_totals (pool_id, slots)
     select m.pool_id, count(*) from public.slot_manifest m group by m.pool_id`,
  );
  await client.query('select intake.ensure_inventory()');
  await client.query(
    `update public.inventory_slots s set sale_order = c.sale_order
     from pg_temp.slot_cache c where s.id = c.slot_id and c.sale_order is not null`,
  );
  await client.query(
    `delete from public.inventory_slots s using pg_temp.slot_cache c where s.id = c.slot_id and c.sale_order is null`,
  );
}

const IMPORTED = 'import';
const subjectOf = (sha256: string): string => `export ${sha256}`;

/** Whether this very file was imported into the database. */
export async function isImported(client: pg.Client, sha256: string): Promise<boolean> {
  const { rows } = await client.query(
    'select exists (select from audit.audit_logs a where a.action = $1 and a.subject = $2) as is_imported',
    [IMPORTED, subjectOf(sha256)],
  );
  return rows[0].is_imported;
}

/** The audit row of the import, which is also how a second run knows what the first one finished. */
export async function markImported(
  client: pg.Client,
  sha256: string,
  actor: string,
  details: object,
): Promise<void> {
  await client.query(
    `insert into audit.audit_logs (actor, action, subject, details, written_by)
     values ($1, $2, $3, $4, audit.writer())`,
    [actor, IMPORTED, subjectOf(sha256), JSON.stringify(details)],
  );
}

/** Other sessions of Sluice in this database, by their names. */
export async function otherSessions(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(
    `select distinct a.application_name as name from pg_catalog.pg_stat_activity a
     where a.datname = pg_catalog.current_database() and a.pid <> pg_catalog.pg_backend_pid()
       and a.application_name like 'sluice-%'
     order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** The last export that was imported into this database; undefined where none was, or it is neither side yet. */
export async function lastImport(client: pg.Client): Promise<string | undefined> {
  if ((await sideOf(client)) === undefined) return undefined;
  const [home] = await findHomes(client, [{ name: 'audit_logs', homes: ['audit.audit_logs'] }]);
  if (home === undefined) return undefined;
  const { rows } = await client.query(
    'select a.subject from audit.audit_logs a where a.action = $1 order by a.id desc limit 1',
    [IMPORTED],
  );
  return rows[0]?.subject;
}

/** Whether the database is a cell of a fleet. */
export async function isCell(client: pg.Client): Promise<boolean> {
  const [home] = await findHomes(client, [{ name: 'cells', homes: ['intake.cells'] }]);
  if (home === undefined) return false;
  const { rows } = await client.query(
    `select exists (select from ${home.path} c where c.is_here) as "isCell"`,
  );
  return rows[0].isCell;
}
