import type pg from 'pg';

// The number is this product's own and means nothing.
const LOCK_KEY = 7312026001;

/** Runs `work` while no other session of this database does: two starts at once take turns. */
export async function takingTurns<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('select pg_advisory_lock($1)', [LOCK_KEY]);
  try {
    return await work();
  } finally {
    await client.query('select pg_advisory_unlock($1)', [LOCK_KEY]);
  }
}
