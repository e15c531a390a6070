// The doctor's look for erasures that were cut short: a line only where there is one.

import { blameOf } from '#core/failure.ts';
import type { Database } from '../db/database.ts';
import { type Finding, warn } from './finding.ts';

export async function examineErasures(place: 'db1' | 'db2', db: Database): Promise<Finding[]> {
  try {
    const [row] = await db.call<{ unfinished_erasures: number }>('audit.unfinished_erasures', {});
    const count = row?.unfinished_erasures ?? 0;
    if (count === 0) return [];
    return [
      warn(
        `${place} erasures`,
        `${count} not finished`,
        'run `sluice users erase <id>` again for the user: it goes on',
      ),
    ];
  } catch (error) {
    if (blameOf(error) !== 'denied') throw error;
    return [];
  }
}
