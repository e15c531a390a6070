// The row "database down": a request that every door would take, while no database answers.

import { DOORS, requestTo } from './doors.ts';
import { complaints } from './judge.ts';
import type { Place } from './place.ts';
import type { RowResult } from './run_row.ts';
import { send } from './run_row.ts';

const UNAVAILABLE = { status: 503, word: 'database_unavailable' };

export async function runOutage(there: Place): Promise<RowResult> {
  // What was said about a pool is said again for a second; about this one nobody has asked.
  const place = { ...there, things: { ...there.things, pool: there.things.unseenPool } };
  const doors = DOORS.filter((door) => door.paths[place.runtime] !== undefined && !door.outlivesDatabases);
  const wrong = await Promise.all(
    doors.map(async (door) => {
      const answer = await send(place, await requestTo(door, place));
      return complaints(answer, UNAVAILABLE, place.hidden).map((text) => `${door.name}: ${text}`);
    }),
  );
  return { cells: doors.length, wrong: wrong.flat() };
}
