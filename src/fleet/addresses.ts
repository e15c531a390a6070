// Which cells there are, and where: SLUICE_CELLS, or DB1_URL alone as a fleet of one.

import { StackError } from '../failure.ts';

export interface CellAddress {
  readonly name: string;
  readonly url: string;
}

/** The only cell where DB1_URL says where the intake is. */
export const ONLY_CELL = 'main';

const NAME = '[a-z][a-z0-9_-]{0,31}';
const POSTGRES = 'postgres(?:ql)?';
const HTTP = 'https?';
/** What programs call the ledger beside the cells. */
const LEDGER = 'db2';

export const CELL_VARIABLES = {
  SLUICE_CELLS:
    'several intakes, a=postgres://…,b=postgres://… (docs/fleet.md); instead of DB1_URL, which is a fleet of one',
};

/** Empty where neither variable is set. */
export function readCells(env: NodeJS.ProcessEnv): CellAddress[] {
  const { SLUICE_CELLS: list, DB1_URL: url } = env;
  if (!list) return url ? [{ name: ONLY_CELL, url }] : [];
  const cells = entriesOf(list, POSTGRES);
  if (cells.length === 0)
    throw wrong('SLUICE_CELLS', 'it must be a list such as a=postgres://…,b=postgres://…');
  if (cells.some(({ name }) => name === LEDGER))
    throw wrong('SLUICE_CELLS', `no cell can have the name ${LEDGER}, which is that of the ledger`);
  for (const [what, values] of [
    ['name', cells.map(({ name }) => name)],
    ['address', cells.map(({ url: address }) => address)],
  ] as const)
    if (new Set(values).size < values.length) throw wrong('SLUICE_CELLS', `two cells have the same ${what}`);
  return cells;
}

/** Empty where it is another text than such a list. An entry begins with its name; a comma that no name follows belongs to a value with several hosts. */
function entriesOf(list: string, scheme: string): CellAddress[] {
  const entries = [...list.matchAll(new RegExp(`(?:^|,)\\s*(${NAME})=(?=${scheme}://)`, 'g'))];
  if (entries[0]?.index !== 0) return [];
  return entries.map((entry, at) => ({
    name: entry[1] ?? '',
    url: list.slice(entry.index + entry[0].length, entries[at + 1]?.index).trim(),
  }));
}

/** What DB1_PATRONI_URL says of a cell: of several cells it is a list as SLUICE_CELLS is. Undefined where it does not name the cell. */
export function patroniOf(
  env: NodeJS.ProcessEnv,
  cells: readonly CellAddress[],
  { name }: CellAddress,
): string | undefined {
  const { DB1_PATRONI_URL: list } = env;
  if (!list) return undefined;
  const entries = entriesOf(list, HTTP);
  if (entries.length > 0) return entries.find((entry) => entry.name === name)?.url;
  if (cells.length > 1)
    throw wrong('DB1_PATRONI_URL', 'of several cells it must be a list such as a=http://…,b=http://…');
  return list;
}

function wrong(variable: string, what: string): StackError {
  return new StackError(`${variable} cannot be read: ${what}`, 'see docs/fleet.md');
}

/** The cells of options that may name one intake or several. */
export function cellsOf({ cells, db1Url }: FleetOptions): readonly CellAddress[] {
  return cells ?? [{ name: ONLY_CELL, url: db1Url }];
}

/** In an answer to an operator: the cells whose part is missing. */
export const CELLS_AWAY_HEADER = 'x-sluice-cells-away';

/** How a program is told of its intakes. */
export interface FleetOptions {
  db1Url: string;
  /** Where there are several; db1Url is not used then. */
  cells?: readonly CellAddress[];
}
