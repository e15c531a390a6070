// Waiting until nothing waits any more.

import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../src/migrate/sql.ts';
import { setupSql } from './setup/sql.ts';

const POLL_MS = 200;

/** True when both databases have nothing left to carry; false where that did not come to pass in time. */
export async function drain(db1Url: string, db2Url: string, patienceMs: number): Promise<boolean> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const left = await Promise.all([waitingIn(db1Url, 'waiting_db1'), waitingIn(db2Url, 'waiting_db2')]);
    if (left.every((count) => count === 0)) return true;
    await pause(POLL_MS);
  }
  return false;
}

async function waitingIn(url: string, sql: string): Promise<number> {
  const { rows } = await withClient(url, (client) => client.query<{ waiting: number }>(setupSql(sql)));
  return rows[0]?.waiting ?? 0;
}
