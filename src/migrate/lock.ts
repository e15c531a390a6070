import type pg from 'pg';
import { sqlFile } from './sql.ts';

/** Runs `work` while no other session of this database does: two starts at once take turns. */
export async function takingTurns<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query(sqlFile('./sql/lock_migrations.sql'));
  try {
    return await work();
  } finally {
    await client.query(sqlFile('./sql/unlock_migrations.sql'));
  }
}
