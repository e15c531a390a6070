// Waiting until nothing waits any more.

import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../src/migrate/sql.ts';
import type { Delivery } from '../src/stripe_stand_in/books.ts';
import type { StandInClient } from '../src/stripe_stand_in/client.ts';

const POLL_MS = 200;
/** What has not come to its end in DB1, by what it is. A session that is processing waits for its buyer's bank. */
const INTAKE = `
  select (select count(*)::int from pgmq.q_intake_queue) as messages,
    (select count(*)::int from pgmq.q_event_inbox) as "events in the inbox",
    (select count(*)::int from public.claims c where c.state = 'held') as "held seats",
    (select count(*)::int from public.checkouts k where k.state in ('creating', 'open', 'processing')) as sessions`;
/** The same in DB2: events that wait, failed or are worked on, what the intake has to be asked, refunds to be sent. */
const LEDGER = `
  select (select count(*)::int from public.webhook_events e where e.status in ('pending', 'processing', 'failed')) as events,
    (select count(*)::int from public.claim_outbox o where o.state = 'due') as "outbox rows",
    (select count(*)::int from public.refunds_due r where r.state = 'due') as refunds`;

type Waiting = Record<string, number>;

export type Drained = {
  isDrained: boolean;
  /** What was left at the last look, by what it is. */
  left: Waiting;
};

/** Until both databases have nothing left to carry and Stripe nothing to deliver, or `patienceMs` have passed. */
export async function drain(
  urls: { db1: string; db2: string },
  stripe: StandInClient,
  patienceMs: number,
): Promise<Drained> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const left = Object.fromEntries(
      (await Promise.all([waitingIn(urls.db1, INTAKE), waitingIn(urls.db2, LEDGER), undelivered(stripe)]))
        .flatMap((part) => Object.entries(part))
        .filter(([, count]) => count > 0),
    );
    const isDrained = Object.keys(left).length === 0;
    if (isDrained || performance.now() >= deadline) return { isDrained, left };
    await pause(POLL_MS);
  }
}

async function waitingIn(url: string, statement: string): Promise<Waiting> {
  const { rows } = await withClient(url, (client) => client.query<Waiting>(statement));
  return rows[0] ?? {};
}

/** An event that is delivered after the look would change what is judged. */
async function undelivered(stripe: StandInClient): Promise<Waiting> {
  return { deliveries: (await stripe.books<Delivery>('delivery', { state: 'waiting' })).length };
}
