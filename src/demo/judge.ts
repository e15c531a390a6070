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

const LOOK_EVERY_MS = 100;
/** Longer than the server keeps what it said about a pool. */
const POOL_NEWS_MS = 5_000;
const PAGE = '1000';

export async function judge(trial: Trial): Promise<void> {
  const { seats, buyers, tally } = trial;
  const claimed = tally.claims.length;
  if (claimed + tally.soldOut !== buyers)
    note(tally, `${buyers - claimed - tally.soldOut} buyers got neither a seat nor "sold out"`);
  if (tally.tickets !== claimed) note(tally, `${tally.tickets} tickets for ${claimed} claims`);
  const available = await seatsLeft(trial, seats - claimed);
  if (tally.soldOut > 0 && available > 0)
    note(tally, `${tally.soldOut} buyers were told "sold out", and ${available} seats are left`);
  if (claimed + available !== seats) await admitOthers(trial, seats - available - claimed);
}

/** As many as expected, or what the server says after a while. */
async function seatsLeft({ url, pool, signal }: Trial, expected: number): Promise<number> {
  const client = createSluiceClient({ url });
  const until = Date.now() + POOL_NEWS_MS;
  for (;;) {
    const { available } = await client.pool(pool, { signal });
    if (available === expected || Date.now() > until) return available;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** People may buy on the drop page meanwhile. Their claims must be tickets too, and account for every seat that is not ours. */
async function admitOthers({ pool, admin, db2, signal, tally }: Trial, seats: number): Promise<void> {
  const claims = await admin.all<Claim & { state: string }>('/admin/claims', { pool_id: pool, limit: PAGE });
  const theirs = claims.filter(({ user_id, state }) => !isOurs(user_id) && !FREED_STATES.has(state));
  if (theirs.length !== seats) note(tally, `${seats} seats are gone that ${theirs.length} other buyers hold`);
  const other = newTally();
  other.claims.push(...theirs);
  await watchTickets(db2, other, () => true, signal);
  tally.others = other.tickets;
  for (const problem of other.problems) note(tally, problem);
}
