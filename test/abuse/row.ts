// A row of the table: one kind of bad input, and what each door has to say to it.

import type { Door, Group } from './doors.ts';
import type { Expected } from './judge.ts';
import type { Place, Wire } from './place.ts';

export interface Row {
  /** The first column of the table of bad input. */
  readonly fact: string;
  readonly name: string;
  /** By column; a door of a column that is not named has no such row. A function where one door differs from its column. */
  readonly expect: { readonly [group in Group]?: Expected | ((door: Door, place: Place) => Expected) };
  /** The doors that it is about; all of its columns where left out. */
  isFor?(door: Door, place: Place): boolean;
  /** Sent in their order; the last one is judged, all others must be taken. */
  ask(door: Door, place: Place): Promise<Wire[]> | Wire[];
}

export function expectedOf(row: Row, door: Door, place: Place): Expected | undefined {
  if (door.paths[place.runtime] === undefined || row.isFor?.(door, place) === false) return undefined;
  const expected = row.expect[door.group];
  return typeof expected === 'function' ? expected(door, place) : expected;
}
