// What must be true at the end, beside what was noted on the way.

import { setTimeout as delay } from 'node:timers/promises';
import { type Claim, createSluiceClient } from '#client/index.ts';
import { FREED_STATES } from '#core/claim.ts';
import type { AdminClient } from '../admin/client.ts';
import type { Database } from '../db/database.ts';
import { isOurs } from './crowd.ts';
import { watchTickets } from './ledger.ts';
import { newTally, note, type Tally } from './tally.ts';

/** What a demo sells to whom, and how to look at what became of it. */
export interface Trial {
  readonly url: string;
  readonly pool: string;
  readonly seats: number;
  readonly buyers: number;
  readonly admin: AdminClient;
  readonly db2: Database;
  readonly signal: AbortSignal;
  readonly tally: Tally;
}

/** Waits throw when the signal is aborted. */
export interface Clock {
  now(): number;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

const CLOCK: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) => delay(ms, undefined, { signal }),
};

const LOOK_EVERY_MS = 100;
/** Longer than the server keeps what it said about a pool. */
const POOL_NEWS_MS = 5_000;
/** Up to so many the server counts what is left each time; beyond that it says an estimate (public.pool_status). */
const COUNTED_EXACTLY = 2_000;
/** The server counts again after a minute at the latest (intake.next_count), and keeps what it said a little longer. */
const POOL_COUNT_MS = 60_000 + POOL_NEWS_MS;
const PAGE = '1000';

export async function judge(trial: Trial, clock: Clock = CLOCK): Promise<void> {
  const { seats, buyers, tally } = trial;
  const claimed = tally.claims.length;
  if (claimed + tally.soldOut !== buyers)
    note(tally, `${buyers - claimed - tally.soldOut} buyers got neither a seat nor "sold out"`);
  if (tally.tickets !== claimed) note(tally, `${tally.tickets} tickets for ${claimed} claims`);
  const available = await seatsLeft(trial, seats - claimed, clock);
  if (tally.soldOut > 0 && available > 0)
    note(tally, `${tally.soldOut} buyers were told "sold out", and ${available} seats are left`);
  if (claimed + available !== seats) await admitOthers(trial, available);
}

/** As many as expected, or what the server says once it has had the time to count. */
async function seatsLeft({ url, pool, signal }: Trial, expected: number, clock: Clock): Promise<number> {
  const client = createSluiceClient({ url });
  const startedAt = clock.now();
  for (;;) {
    const { available } = await client.pool(pool, { signal });
    const patience = available > COUNTED_EXACTLY ? POOL_COUNT_MS : POOL_NEWS_MS;
    if (available === expected || clock.now() - startedAt > patience) return available;
    await clock.wait(LOOK_EVERY_MS, signal);
  }
}

/** People may buy on the drop page meanwhile. Their claims must be tickets too, and account for every seat that is not ours. */
async function admitOthers(trial: Trial, available: number): Promise<void> {
  const { pool, seats, admin, db2, signal, tally } = trial;
  const claims = await admin.all<Claim & { state: string }>('/admin/claims', { pool_id: pool, limit: PAGE });
  const theirs = claims.filter(({ user_id, state }) => !isOurs(user_id) && !FREED_STATES.has(state));
  const gone = seats - available - tally.claims.length;
  if (theirs.length < gone)
    note(tally, `${gone} seats are gone, and other buyers hold only ${theirs.length} of them`);
  if (theirs.length > gone) {
    const held = tally.claims.length + theirs.length;
    note(
      tally,
      `${available} of ${seats} seats are left while buyers hold ${held}: more are left than there can be`,
    );
  }
  const other = newTally();
  other.claims.push(...theirs);
  await watchTickets(db2, other, () => true, signal);
  tally.others = other.tickets;
  for (const problem of other.problems) note(tally, problem);
}
