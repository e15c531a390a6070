// The row "database down": a request that every door would take, while no database answers.

import { DOORS, requestTo } from './doors.ts';
import { complaints } from './judge.ts';
import type { Place } from './place.ts';
import type { RowResult } from './run_row.ts';
import { send } from './run_row.ts';

const UNAVAILABLE = { status: 503, word: 'database_unavailable' };

export async function runOutage(there: Place): Promise<RowResult> {
  // The server caches its answer about a pool for a second. No request has asked about this pool yet.
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
