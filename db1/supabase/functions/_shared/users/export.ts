// All that is known about one user, place by place. Where it was found, the audit log says who asked. Several cells are read one after
// another: a pool that moved meanwhile may have been in none of them, so then the export ends without its last page.

import { HttpError } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import { type UserDatabase, type UserPorts, type UserRequest, verifiedOf } from './databases.ts';

/** Where a reader stands: behind this key of this place. */
export interface Position {
  readonly database: string;
  readonly place: string;
  readonly after: Readonly<Record<string, JsonValue>> | null;
  /** How often pools had moved when the export began. */
  readonly moves?: string;
}

export interface Found {
  readonly database: string;
  /** A table. */
  readonly place: string;
  readonly rows: readonly Readonly<Record<string, JsonValue>>[];
  /** Where to go on; null at the end. */
  readonly next: Position | null;
}

interface Page {
  readonly own: Found['rows'];
  readonly last_key: Position['after'];
}

/** Rows that are looked at in one call. */
const ROWS_AT_ONCE = 1_000;

/**
 * Every page, those without a row of the user too: a reader may stop after any of them, and go on there. `isTold` is false for who only
 * counts. Throws pool_moving where a pool moved since the beginning.
 */
export async function* readUser(
  { ledger, cells }: Pick<UserPorts, 'ledger' | 'cells'>,
  request: UserRequest,
  from?: Position,
  isTold = true,
): AsyncGenerator<Found> {
  const p_user_id = request.userId;
  const p_verified = verifiedOf(request.namespace);
  const all: { database: UserDatabase; place: string }[] = [];
  for (const database of [...cells, ledger])
    for (const { personal_places: place } of await database.call<{ personal_places: string }>(
      'personal_places',
      { p_verified },
    ))
      all.push({ database, place });
  const begin = from === undefined ? 0 : placeOf(all, from);
  const moves = from?.moves ?? (await movesOf(cells));
  const told = new Set<string>();
  for (const [at, { database, place }] of all.entries()) {
    if (at < begin) continue;
    let after = at === begin ? (from?.after ?? null) : null;
    do {
      const args = {
        p_user_id,
        p_verified,
        p_place: place,
        p_after: after && JSON.stringify(after),
        p_limit: ROWS_AT_ONCE,
      };
      const [page] = await database.call<Page>('export_user', args);
      const rows = page?.own ?? [];
      if (isTold && rows.length > 0 && !told.has(database.name)) {
        await database.call('note_export', {
          p_user_id,
          p_verified,
          p_actor: request.actor,
          p_reason: request.reason,
        });
        told.add(database.name);
      }
      after = page?.last_key ?? null;
      const next = nextOf(all, at, after);
      if (next === null && (await movesOf(cells)) !== moves)
        throw new HttpError('pool_moving', 'A pool moved between two cells meanwhile: export again.');
      yield { database: database.name, place, rows, next: next && { ...next, moves } };
    } while (after !== null);
  }
}

/** How many pools have left or come, by cell. */
async function movesOf(cells: readonly UserDatabase[]): Promise<string> {
  const counts: string[] = [];
  for (const cell of cells) {
    const [row] = await cell.call<{ pool_moves: number | string }>('pool_moves', {});
    counts.push(String(row?.pool_moves));
  }
  return counts.join(',');
}

function placeOf(all: readonly { database: UserDatabase; place: string }[], from: Position): number {
  const at = all.findIndex(({ database, place }) => database.name === from.database && place === from.place);
  if (at === -1) throw new HttpError('invalid_input', 'after is not what an answer had as next.');
  return at;
}

function nextOf(
  all: readonly { database: UserDatabase; place: string }[],
  at: number,
  after: Position['after'],
): Position | null {
  const next = all[after === null ? at + 1 : at];
  return next === undefined ? null : { database: next.database.name, place: next.place, after };
}
