// Waiting until nothing waits any more.

import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../src/migrate/sql.ts';

const POLL_MS = 200;
/**
 * What has not come to its end: in DB1 messages on the queue, deliveries in the inbox, held seats and sessions that can still take
 * money; in DB2 events that wait, failed or are worked on, what the intake has to be asked, and refunds to be sent.
 */
const MESSAGES = `
  select (select count(*)::int from pgmq.q_intake_queue) + (select count(*)::int from pgmq.q_event_inbox)
    + (select count(*)::int from public.claims c where c.state = 'held')
    + (select count(*)::int from public.checkouts k where k.state in ('creating', 'open')) as waiting`;
const EVENTS = `
  select (select count(*)::int from public.webhook_events e where e.status in ('pending', 'processing', 'failed'))
    + (select count(*)::int from public.claim_outbox o where o.state = 'due')
    + (select count(*)::int from public.refunds_due r where r.state = 'due') as waiting`;

/** True when both databases have nothing left to carry; false where that did not come to pass in time. */
export async function drain(db1Url: string, db2Url: string, patienceMs: number): Promise<boolean> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const left = await Promise.all([waitingIn(db1Url, MESSAGES), waitingIn(db2Url, EVENTS)]);
    if (left.every((count) => count === 0)) return true;
    await pause(POLL_MS);
  }
  return false;
}

async function waitingIn(url: string, statement: string): Promise<number> {
  const { rows } = await withClient(url, (client) => client.query<{ waiting: number }>(statement));
  return rows[0]?.waiting ?? 0;
}
