// What the ledger says: whether it is there, which claims are tickets, and what was paid.

import { setTimeout as delay } from 'node:timers/promises';
import type { Claim } from '#client/index.ts';
import { isUnavailable } from '#core/failure.ts';
import type { Database } from '../db/database.ts';
import { PRICE } from './payments.ts';
import { note, type Tally } from './tally.ts';

const LOOK_EVERY_MS = 250;
/** Asked for at a time. */
const PAGE = 1_000;
/** Without one more ticket for so long, nothing carries claims there. Longer than any outage the demo makes. */
const PATIENCE_MS = 120_000;

type Ticket = Readonly<Record<'slot_id' | 'user_id' | 'claim_id', string>>;
type Confirmed = Readonly<Record<'claim_id' | 'confirmed_at', string>>;

/**
 * Looks until `isOver` says that no more claims come and each of them is a ticket: of the same claim, for the same buyer. A
 * ledger that does not answer is waited for.
 */
export async function watchTickets(
  db2: Database,
  tally: Tally,
  isOver: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  const missing = new Map<string, Claim>();
  let known = 0;
  let patientUntil = Date.now() + PATIENCE_MS;
  for (;;) {
    const wasOver = isOver();
    for (; known < tally.claims.length; known++) {
      const claim = tally.claims[known];
      if (claim === undefined) break;
      if (missing.has(claim.resource_id)) note(tally, `slot ${claim.resource_id} was given to two buyers`);
      missing.set(claim.resource_id, claim);
    }
    const found = await lookFor(db2, missing, tally);
    if (wasOver && missing.size === 0) return;
    if (found > 0 || !wasOver) patientUntil = Date.now() + PATIENCE_MS;
    if (Date.now() > patientUntil) {
      note(tally, `${missing.size} claims are no tickets after ${PATIENCE_MS / 1_000} s of waiting`);
      return;
    }
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** How many became tickets since the last look. */
async function lookFor(db2: Database, missing: Map<string, Claim>, tally: Tally): Promise<number> {
  let found = 0;
  const ids = [...missing.keys()];
  for (let at = 0; at < ids.length; at += PAGE) {
    const page = ids.slice(at, at + PAGE);
    const tickets = await answered(() =>
      db2.call<Ticket>('public.tickets_page', { p_limit: PAGE, p_resource_ids: page }),
    );
    for (const { slot_id, claim_id, user_id } of tickets ?? []) {
      const claim = missing.get(slot_id);
      if (claim?.claim_id !== claim_id || claim.user_id !== user_id)
        note(tally, `the ticket of slot ${slot_id} is another buyer's`);
      missing.delete(slot_id);
      found++;
      tally.tickets++;
    }
  }
  return found;
}

/** Looks until every payment has taken effect, once. What it adds up to tells how many did. */
export async function watchEffects(
  db2: Database,
  account: string,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const rows = await answered(() =>
      db2.call<{ amount: number }>('webhook.balance', { p_user_id: account }),
    );
    tally.effects = (rows?.[0]?.amount ?? 0) / PRICE;
    if (rows !== undefined && tally.effects >= tally.paid) break;
    if (Date.now() > until) break;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
  if (tally.effects !== tally.paid) note(tally, `${tally.paid} payments had ${tally.effects} effects`);
}

/**
 * Tells the tally whether the ledger answers and since when it runs, until the signal. The other looks here can take long. One look
 * without an answer says nothing yet: a busy machine can be too slow for it.
 */
export async function watchLedger(db2: Database, tally: Tally, signal: AbortSignal): Promise<void> {
  let wasAnswered = true;
  while (!signal.aborted) {
    const rows = await answered(() =>
      db2.call<{ pg_postmaster_start_time: string }>('pg_catalog.pg_postmaster_start_time', {}),
    );
    const isAnswered = rows !== undefined;
    tally.ledgerAnswers = isAnswered || wasAnswered;
    wasAnswered = isAnswered;
    tally.ledgerStartedAtMs =
      Date.parse(rows?.[0]?.pg_postmaster_start_time ?? '') || tally.ledgerStartedAtMs;
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** How many claims that were made before the ledger was started became tickets after that, by the databases' own clocks. */
export async function countWaiting(
  db2: Database,
  pool: string,
  claims: readonly Claim[],
  startedAtMs: number,
): Promise<number> {
  const earlier = new Set(
    claims.filter(({ claimed_at }) => Date.parse(claimed_at) <= startedAtMs).map(({ claim_id }) => claim_id),
  );
  let waited = 0;
  for (let after: string | null = null; ; ) {
    const tickets: Confirmed[] = await db2.call<Confirmed>('public.ticket_list', {
      p_pool_id: pool,
      p_after: after,
      p_limit: PAGE,
    });
    waited += tickets.filter(
      ({ claim_id, confirmed_at }) => earlier.has(claim_id) && Date.parse(confirmed_at) >= startedAtMs,
    ).length;
    after = tickets.at(-1)?.claim_id ?? null;
    if (tickets.length < PAGE) return waited;
  }
}

/** Undefined while the ledger is away. An outage is part of the show; anything else is a mistake of ours. */
async function answered<Row>(ask: () => Promise<Row[]>): Promise<Row[] | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return undefined;
  }
}
