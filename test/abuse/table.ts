// The whole table of bad input: every row, for every door that it is about.

import { BODY_ROWS } from './body_rows.ts';
import { DOOR_ROWS } from './door_rows.ts';
import { DOORS, type Door } from './doors.ts';
import type { Expected } from './judge.ts';
import { MEANING_ROWS } from './meaning_rows.ts';
import type { Place } from './place.ts';
import { expectedOf, type Row } from './row.ts';

export const TABLE: readonly Row[] = [...DOOR_ROWS, ...BODY_ROWS, ...MEANING_ROWS];

export interface Cell {
  readonly row: Row;
  readonly door: Door;
  readonly expected: Expected;
}

export function cellsOf(row: Row, place: Place): Cell[] {
  return DOORS.flatMap((door) => {
    const expected = expectedOf(row, door, place);
    return expected === undefined ? [] : [{ row, door, expected }];
  });
}
