// Which cells there are, and where: SLUICE_CELLS, or DB1_URL alone as a fleet of one.

import { StackError } from '../failure.ts';

export interface CellAddress {
  readonly name: string;
  readonly url: string;
}

/** The only cell where DB1_URL says where the intake is. */
export const ONLY_CELL = 'main';

const NAME = '[a-z][a-z0-9_-]{0,31}';
/** An entry begins with its name; a comma that no name follows belongs to a URL with several hosts. */
const ENTRY = new RegExp(`(?:^|,)\\s*(${NAME})=(?=postgres(?:ql)?://)`, 'g');

export const CELL_VARIABLES = {
  SLUICE_CELLS:
    'several intakes, a=postgres://…,b=postgres://… (docs/fleet.md); instead of DB1_URL, which is a fleet of one',
};

/** Empty where neither variable is set. */
export function readCells(env: NodeJS.ProcessEnv): CellAddress[] {
  const { SLUICE_CELLS: list, DB1_URL: url } = env;
  if (!list) return url ? [{ name: ONLY_CELL, url }] : [];
  const entries = [...list.matchAll(ENTRY)];
  const cells = entries.map((entry, at) => ({
    name: entry[1] ?? '',
    url: list.slice(entry.index + entry[0].length, entries[at + 1]?.index).trim(),
  }));
  if (cells.length === 0 || entries[0]?.index !== 0)
    throw wrong('it must be a list such as a=postgres://…,b=postgres://…');
  for (const [what, values] of [
    ['name', cells.map(({ name }) => name)],
    ['address', cells.map(({ url: address }) => address)],
  ] as const)
    if (new Set(values).size < values.length) throw wrong(`two cells have the same ${what}`);
  return cells;
}

function wrong(what: string): StackError {
  return new StackError(`SLUICE_CELLS cannot be read: ${what}`, 'see docs/fleet.md');
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
