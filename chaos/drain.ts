// Waiting until nothing waits any more.

import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../src/migrate/sql.ts';

const POLL_MS = 200;
/** What has not come to its end: in DB1 messages on the queue and deliveries in the inbox, in DB2 events that wait, failed or are worked on. */
const MESSAGES = `
  select (select count(*)::int from pgmq.q_intake_queue) + (select count(*)::int from pgmq.q_event_inbox) as waiting`;
const EVENTS = `
  select count(*)::int as waiting from public.webhook_events e where e.status in ('pending', 'processing', 'failed')`;

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
