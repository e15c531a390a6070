// The row "too many requests": as many claims are under way as the server takes, and every claim door is asked once more.

import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { type Answer, ask, openClient } from '../server/support.ts';
import { DOORS, requestTo } from './doors.ts';
import { CLAIM_SECRET } from './furnish.ts';
import { complaints } from './judge.ts';
import type { Place } from './place.ts';
import { type RowResult, send } from './run_row.ts';

/** What the server of this row is told to take. Not more than it has connections: those who wait for one are not seen. */
export const MAX_REQUESTS = 3;
const POLL_MS = 20;
/** The doors that share a budget with the claims under way. */
const CLAIM_DOOR = /^\S+ \/v1\/(claims\/|pools\/:pool\/claims)/;
const TOO_MANY = { status: 429, word: 'too_many_requests' };

export interface Flood extends RowResult {
  /** The answers to the requests that were waiting. */
  readonly answers: readonly Answer[];
}

/** Locks the claims table, so that every request for a claim waits until the lock is released. */
export async function runFlood(place: Place): Promise<Flood> {
  const locker = await openClient(place.databaseUrls()[0]);
  const watcher = await openClient(place.databaseUrls()[0]);
  try {
    // The server waits two seconds for a lock. Without a limit no request gives up, however slow the machine is.
    await locker.query('alter function public.get_claim(uuid, bytea) set lock_timeout = 0');
    await locker.query('begin; lock table public.claims');
    const path = `/v1/claims/${place.things.claimId}`;
    const headers = { 'x-claim-secret': CLAIM_SECRET };
    const asked = Array.from({ length: MAX_REQUESTS }, () => ask(place.url + path, { headers }));
    while ((await countWaiting(watcher)) < MAX_REQUESTS) await delay(POLL_MS);
    const doors = DOORS.filter(({ name }) => CLAIM_DOOR.test(name));
    const judged = await Promise.all(
      doors.map(async (door) => {
        const answer = await send(place, await requestTo(door, place));
        return complaints(answer, TOO_MANY, place.hidden).map((text) => `${door.name}: ${text}`);
      }),
    );
    const wrong = judged.flat();
    if (!(await place.isAlive())) wrong.push('/healthz was not answered');
    const { status } = await ask(`${place.url}/v1/pools/${place.things.pool}`);
    if (status !== 200) wrong.push(`the pool's page was answered ${status}: it has a budget of its own`);
    await locker.query('rollback');
    await locker.query('alter function public.get_claim(uuid, bytea) reset lock_timeout');
    return { cells: doors.length, wrong, answers: await Promise.all(asked) };
  } finally {
    await Promise.all([locker.end(), watcher.end()]);
  }
}

async function countWaiting(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    `select count(*)::int as n from pg_catalog.pg_stat_activity
     where application_name = 'sluice-server' and wait_event_type = 'Lock'`,
  );
  return rows[0].n;
}
