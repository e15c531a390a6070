// Keeps the copy of endpoints, sites and names of secrets that a cell has, so that a door can verify while DB2 is away.

import type { CallFunction } from '../call_function.ts';
import type { Log } from '../ports.ts';

/** How often a server copies: a change in DB2 is in the copy after this long. */
export const COPY_MS = 5_000;

/** A row of webhook.doors. */
interface Doors {
  readonly read_at: string;
  /** By kind and name. */
  readonly doors: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** `webhook` takes names of functions in schema webhook of DB2, each of `cells` those of schema public of a DB1. */
export async function copyDoors(
  webhook: CallFunction,
  cells: readonly CallFunction[],
  log: Log,
): Promise<void> {
  const [row] = await webhook<Doors>('doors', {});
  if (row === undefined) throw new Error('doors gave no row');
  const args = { p_doors: row.doors, p_read_at: row.read_at };
  const copy = async (cell: CallFunction) => {
    const [end] = await cell<{ copy_doors: boolean }>('copy_doors', args);
    // Another server has copied a later look. If that copy then grows old, sluice_inbox_doors_age_seconds shows it.
    if (end?.copy_doors === false)
      log.debug('a cell has a later copy of endpoints and sites', { read_at: row.read_at });
  };
  const ends = await Promise.allSettled(cells.map(copy));
  // A cell that is away keeps an older copy; the others have theirs.
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
