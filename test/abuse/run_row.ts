// Asks a row at all of its doors and collects what is wrong, with the databases compared before and after.

import { type Answer, ask } from '../server/support.ts';
import { DOORS, requestTo } from './doors.ts';
import type { Watch } from './fingerprint.ts';
import { complaints } from './judge.ts';
import type { Place, Wire } from './place.ts';
import type { Row } from './row.ts';
import { type Cell, cellsOf } from './table.ts';

export interface RowResult {
  readonly cells: number;
  /** One line for each thing that is wrong. */
  readonly wrong: string[];
}

/** The control of the whole table: what its rows are made from is good, so what is refused is what was changed. */
export async function runGood(place: Place): Promise<RowResult> {
  const doors = DOORS.filter((door) => door.paths[place.runtime] !== undefined && !door.isStream);
  const wrong: string[] = [];
  for (const door of doors) {
    const { status, text } = await send(place, await requestTo(door, place));
    if (status !== (door.answers ?? 200)) wrong.push(`${door.name}: answered ${status} ${text}`);
  }
  return { cells: doors.length, wrong };
}

/** Several at once: what a door answers must not depend on its neighbours. */
const AT_ONCE = 6;

export function send(place: Place, { path, ...wire }: Wire): Promise<Answer> {
  // `ask` hands them to node:http as they are, and that takes lists.
  return ask(place.url + path, wire as Parameters<typeof ask>[1]);
}

export async function runRow(row: Row, place: Place, watch: Watch): Promise<RowResult> {
  const cells = cellsOf(row, place);
  const isQuiet = ({ expected, row: { fact } }: Cell): boolean =>
    expected.changes === undefined && !SEVERAL_REQUESTS.has(fact);
  const wrong = await runQuietly(cells.filter(isQuiet), place, watch);
  for (const cell of cells.filter((each) => !isQuiet(each)))
    wrong.push(...(await runAlone(cell, place, watch)));
  if (!(await place.isAlive())) wrong.push('the process is gone');
  return { cells: cells.length, wrong };
}

/** Their first request is to be taken, and changes things. */
const SEVERAL_REQUESTS: ReadonlySet<string> = new Set(['duplicate delivery', 'same id, other body']);

/** Together, with one look at the databases. Where they differ, one by one, to tell whose doing it was. */
async function runQuietly(cells: readonly Cell[], place: Place, watch: Watch): Promise<string[]> {
  const wrong: string[] = [];
  const waiting = [...cells];
  const worker = async () => {
    for (let cell = waiting.pop(); cell !== undefined; cell = waiting.pop())
      wrong.push(...(await judge(cell, place, (await cell.row.ask(cell.door, place)).at(-1) as Wire)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const tables = await watch.changes();
  if (tables.length === 0) return wrong;
  wrong.push(`changed ${tables}`);
  for (const cell of cells) wrong.push(...(await runAlone(cell, place, watch)));
  return wrong;
}

async function runAlone(cell: Cell, place: Place, watch: Watch): Promise<string[]> {
  const wires = await cell.row.ask(cell.door, place);
  for (const wire of wires.slice(0, -1)) {
    const first = await send(place, wire);
    if (first.status >= 300)
      return [`${nameOf(cell)}: the first request was answered ${first.status} ${first.text}`];
  }
  // What the first ones changed is not what is looked at.
  if (wires.length > 1) await watch.take();
  const wrong = await judge(cell, place, wires.at(-1) as Wire);
  const tables = await watch.changes();
  const { changes = [] } = cell.expected;
  const unexpected = tables.filter((table) => !changes.includes(table));
  const missing = changes.filter((table) => !tables.includes(table));
  if (unexpected.length > 0) wrong.push(`${nameOf(cell)}: changed ${unexpected}`);
  if (missing.length > 0) wrong.push(`${nameOf(cell)}: did not change ${missing}`);
  return wrong;
}

async function judge(cell: Cell, place: Place, wire: Wire): Promise<string[]> {
  try {
    const answer = await send(place, wire);
    return complaints(answer, cell.expected, place.hidden).map((text) => `${nameOf(cell)}: ${text}`);
  } catch (error) {
    return [`${nameOf(cell)}: no answer: ${(error as Error).message}`];
  }
}

const nameOf = ({ row, door }: Cell): string => `${row.name} at ${door.name}`;
