// Which database is which. Both sides number their migrations alike, so that one in the other's place looks like one of another
// version, and what helps there would do harm here.

import type pg from 'pg';
import { StackError } from '../failure.ts';

export type SideName = 'db1' | 'db2';

const NAMES: Readonly<Record<SideName, string>> = { db1: 'the intake', db2: 'the ledger' };

/** Undefined for a database that is neither yet. */
export async function sideOf(client: pg.Client): Promise<SideName | undefined> {
  // By the table that only it has.
  const { rows } = await client.query(`
    select pg_catalog.to_regclass('public.inventory_slots') is not null as is_intake,
      pg_catalog.to_regclass('public.confirmed_tickets') is not null as is_ledger`);
  return rows[0].is_intake ? 'db1' : rows[0].is_ledger ? 'db2' : undefined;
}

/** What is wrong with the addresses, by which sides they lead to; undefined where nothing is. */
export function misplacement(
  place: SideName,
  sides: Readonly<Record<SideName, SideName | undefined>>,
): { found: string; todo: string } | undefined {
  const side = sides[place];
  if (side === undefined || side === place) return undefined;
  const found = `${place.toUpperCase()}_URL leads to ${NAMES[side]}`;
  return sides[side] === place
    ? {
        found: `${found}: DB1_URL and DB2_URL are swapped`,
        todo: 'swap DB1_URL and DB2_URL; change nothing in the databases',
      }
    : {
        found,
        todo: `give ${place.toUpperCase()}_URL the address of ${NAMES[place]}; change nothing in the databases`,
      };
}

export function refuseMisplaced(sides: Readonly<Record<SideName, SideName | undefined>>): void {
  for (const place of ['db1', 'db2'] as const) {
    const wrong = misplacement(place, sides);
    if (wrong !== undefined) throw new StackError(wrong.found, wrong.todo);
  }
}
