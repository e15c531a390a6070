// Delivers the events of many lives to a running server, as Stripe does: in any order, some of them several times, many at
// once, to an endpoint that answers after the effect and to one that queues, while a worker carries what is queued.

import { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { createRandom } from '../../../chaos/random.ts';
import type { WebhookWorld } from '../world.ts';
import { ACCOUNT, drawLife, type Life, type StripeEvent } from './life.ts';

/** Lives whose events are shuffled together. */
const LIVES_AT_ONCE = 50;
const IN_FLIGHT = 24;
/** The provider gives up after days; so many tries are far more than a busy server needs. */
const TRIES_MAX = 20;
const RETRY_MS = 50;
const ENDPOINTS = ['lives-inline', 'lives-queued'] as const;

export type Wrong = { life: string; have: string; want: string; events: string[] };

export async function addEndpoints(world: WebhookWorld): Promise<void> {
  for (const name of ENDPOINTS)
    await world.addEndpoint(name, 'stripe', name === 'lives-inline' ? 'inline' : 'queued', {
      accounts: [ACCOUNT],
    });
}

export function drawLives(count: number, seed: number, prefix = 'l'): Life[] {
  return Array.from({ length: count }, (_, at) =>
    drawLife(`${prefix}${at}`, createRandom(seed, `life ${at}`)),
  );
}

/** Delivers all events, then lets the worker finish; answers how many deliveries that took. */
export async function deliver(world: WebhookWorld, lives: readonly Life[], seed: number): Promise<number> {
  const random = createRandom(seed, 'deliveries');
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  let deliveries = 0;
  try {
    for (let from = 0; from < lives.length; from += LIVES_AT_ONCE) {
      const events = lives.slice(from, from + LIVES_AT_ONCE).flatMap((life) => life.events);
      const again = events.filter(() => random.chance(0.4));
      const queue = random
        .shuffled([...events, ...again, ...again.filter(() => random.chance(0.3))])
        .map((event) => ({ event, endpoint: random.pick(ENDPOINTS) }));
      deliveries += queue.length;
      const senders = Array.from({ length: IN_FLIGHT }, async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop())
          await post(world, next.endpoint, next.event, agent);
      });
      let isSent = false;
      const sent = Promise.all(senders).finally(() => {
        isSent = true;
      });
      while (!isSent) await world.process();
      await sent;
    }
    await world.process();
  } finally {
    agent.destroy();
  }
  return deliveries;
}

async function post(world: WebhookWorld, endpoint: string, { id, body }: StripeEvent, agent: Agent) {
  for (let tries = 1; ; tries++) {
    const { status } = await world.send(endpoint, 'stripe', body, { agent });
    if (status === 200) return;
    if (status < 500 || tries === TRIES_MAX) throw new Error(`${id} was answered ${status}`);
    await setTimeout(RETRY_MS);
  }
}

/** The lives whose balance is not what their facts add up to. A payment that names no user has its money on the list. */
export async function findWrong(world: Pick<WebhookWorld, 'rows'>, lives: readonly Life[]): Promise<Wrong[]> {
  const rows = await world.rows<{ payment: string; worth: string }>(
    `select p.object_id as payment, concat_ws(' ', p.user_id, coalesce(p.currency, '-'), (
       select coalesce(sum(c.amount), 0) from public.credit_ledger c
       where c.provider = p.provider and c.object_id = p.object_id and c.user_id = p.user_id and c.currency = p.currency
     ), case when p.user_id is null then p.captured - p.refunded + coalesce(p.disputed, 0) end) as worth
     from public.payments p where p.provider = 'stripe' and p.object_id = any ($1)`,
    [lives.map((life) => life.payment)],
  );
  const worths = new Map(rows.map(({ payment, worth }) => [payment, worth]));
  return lives.flatMap((life) => {
    const { payment, user, currency, balance, naming, events } = life;
    const want = naming === 'nowhere' ? `${currency} 0 ${balance}` : `${user} ${currency} ${balance}`;
    const have = worths.get(payment) ?? 'nothing';
    return have === want ? [] : [{ life: payment, have, want, events: events.map(({ body }) => body) }];
  });
}

/** How many events ended in which way; the reasons of those that were skipped. */
export async function endsOf(world: Pick<WebhookWorld, 'rows'>): Promise<Record<string, number>> {
  const rows = await world.rows<{ how: string; events: number }>(
    `select concat_ws(': ', e.status, regexp_replace(e.error, '^(no handler for) .*', '\\1')) as how, count(*)::int as events
     from public.webhook_events e group by 1 order by 1`,
  );
  return Object.fromEntries(rows.map(({ how, events }) => [how, events]));
}
