// Takes an existing table over: all steps in one transaction, under locks that keep its other users out meanwhile.

import pg from 'pg';
import { StackError } from '../../failure.ts';
import { takingTurns } from '../lock.ts';
import { lookAtAdoption } from './look.ts';
import { ADOPTED_TABLES } from './tables.ts';

/** How long it waits for users of a table; then it gives up, and they go on. */
const LOCK_TIMEOUT = '10s';

/**
 * Makes the tables of this database that Sluice can take over its own, and returns what was done. Nothing is changed where
 * something stands in the way. A second call does nothing; one that was killed has changed nothing.
 */
export async function adopt(client: pg.Client): Promise<string[]> {
  return takingTurns(client, async () => {
    await client.query('begin');
    try {
      await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      for (const { name } of ADOPTED_TABLES) {
        const { rows } = await client.query('select to_regclass($1) is not null as found', [name]);
        if (rows[0].found) await client.query(`lock table ${name} in access exclusive mode`);
      }
      const { steps, obstacles } = await lookAtAdoption(client);
      const [first] = obstacles;
      if (first !== undefined) throw new StackError(first.what, first.hint);
      for (const { what, sql } of steps) await take(client, what, sql);
      await client.query('commit');
      return steps.map(({ what }) => what);
    } catch (error) {
      await client.query('rollback');
      throw error;
    }
  });
}

async function take(client: pg.Client, what: string, sql: string): Promise<void> {
  try {
    await client.query(sql);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new StackError(
      `${what}: ${error.message} (${error.code})`,
      error.hint ?? error.detail ?? 'the table is as it was; mend this and run again',
      error,
    );
  }
}
