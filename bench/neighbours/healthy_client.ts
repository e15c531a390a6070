// A process of its own: the healthy one. Its requests come at a fixed pace, whatever became of the earlier ones, and each
// counts from the moment it was due: a neighbour that stops the product for a second delays all requests of that second.

import { createHmac, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { sampleOf } from '../../src/webhook/samples.ts';
import { HEALTHY, HEALTHY_ENV, type HealthyOrder, type HealthyReport, type HeldOrder } from './healthy.ts';

const MS_PER_SEC = 1_000;
/** One indexed look at DB2 for all that wait. Latencies of tickets and effects are that coarse. */
const LOOK_MS = 5;
const MAX_SOCKETS = 256;

const TICKETS =
  'select t.claim_id::text as id from public.confirmed_tickets t where t.claim_id = any ($1::uuid[])';
const LOOK = {
  tickets: TICKETS,
  orders: TICKETS,
  effects: `select e.event_id as id from public.webhook_events e
    where e.provider = 'stripe' and e.event_id = any ($1) and e.status = 'success'`,
};

type Answer = { status: number; body: string };
type Waiting = Map<string, { dueMs: number; done(failure?: string): void }>;

const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });

function post(order: HealthyOrder, path: string, headers: Record<string, string>, body: string) {
  return new Promise<Answer>((resolve, reject) => {
    const options = { agent, host: '127.0.0.1', port: order.port, method: 'POST', path };
    const all = { 'content-type': 'application/json', ...headers };
    const signal = AbortSignal.timeout(order.patienceMs);
    const asked = request({ ...options, headers: all, signal }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk;
        })
        .on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
        .on('error', reject);
    });
    asked.on('error', reject).end(body);
  });
}

async function claimOnce(order: HealthyOrder): Promise<string> {
  const id = randomUUID();
  const secret = order.hasSecrets ? { secret: `secret-${id}` } : {};
  const body = JSON.stringify({ user_id: `user ${id}`, request_id: id, ...secret });
  const answer = await post(order, `/v1/pools/${order.pool ?? HEALTHY}/claims`, {}, body);
  if (answer.status !== 201) throw new Error(`status ${answer.status}`);
  return JSON.parse(answer.body).claim_id;
}

async function deliverOnce(order: HealthyOrder): Promise<string> {
  const eventId = `evt_${randomUUID().replaceAll('-', '')}`;
  const atSec = Math.floor(Date.now() / MS_PER_SEC);
  const sample = { type: 'payment_intent.succeeded', eventId, user: `user ${eventId}`, amount: 2500, atSec };
  await deliver(order, sampleOf('stripe', sample)?.body ?? '', atSec);
  return eventId;
}

/** The claim that is paid for. */
async function payOnce(order: HealthyOrder, held: HeldOrder | undefined): Promise<string> {
  if (held === undefined) throw new Error('there are fewer orders than requests');
  const { claimId, userId, amount } = held;
  const id = randomUUID().replaceAll('-', '');
  const atSec = Math.floor(Date.now() / MS_PER_SEC);
  const object = {
    ...{ id: `pi_${id}`, object: 'payment_intent', amount, amount_received: amount, currency: 'eur' },
    metadata: { claim_id: claimId, user_id: userId, verified: 'true' },
  };
  const event = { id: `evt_${id}`, object: 'event', type: 'payment_intent.succeeded', created: atSec };
  await deliver(order, JSON.stringify({ ...event, livemode: true, data: { object } }), atSec);
  return claimId;
}

async function deliver(order: HealthyOrder, body: string, atSec: number): Promise<void> {
  const signature = createHmac('sha256', HEALTHY_ENV.STRIPE_WEBHOOK_SECRET)
    .update(`${atSec}.${body}`)
    .digest('hex');
  const headers = { 'stripe-signature': `t=${atSec},v1=${signature}` };
  const answer = await post(order, `/webhooks/${HEALTHY}`, headers, body);
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
}

/** Looks at DB2 for what waits, until `isOver`. */
async function look(order: HealthyOrder, text: string, waiting: Waiting, isOver: () => boolean) {
  const client = new pg.Client({ connectionString: order.db2Url, application_name: 'sluice bench healthy' });
  await client.connect();
  while (!isOver()) {
    await pause(LOOK_MS);
    if (waiting.size === 0) continue;
    const { rows } = await client.query<{ id: string }>({
      name: 'look',
      text,
      values: [[...waiting.keys()]],
    });
    for (const { id } of rows) waiting.get(id)?.done();
    for (const { dueMs, done } of waiting.values())
      if (performance.now() - dueMs > order.patienceMs) done('too late');
  }
  await client.end();
}

async function measure(order: HealthyOrder): Promise<HealthyReport> {
  const report: HealthyReport = { tookMs: [], failures: {} };
  const waiting: Waiting = new Map();
  const isClaim = order.kind === 'claims' || order.kind === 'tickets';
  let ended = 0;
  const text = order.kind === 'claims' || order.kind === 'events' ? undefined : LOOK[order.kind];
  const looking = text === undefined ? undefined : look(order, text, waiting, () => ended === order.count);
  const ask = (at: number): Promise<string> => {
    if (order.kind === 'orders') return payOnce(order, order.orders?.[at]);
    return isClaim ? claimOnce(order) : deliverOnce(order);
  };
  const one = async (dueMs: number, at: number): Promise<void> => {
    let failure: string | undefined;
    try {
      const id = await ask(at);
      if (text !== undefined)
        failure = await new Promise((resolve) => {
          const done = (why?: string): void => {
            waiting.delete(id);
            resolve(why);
          };
          waiting.set(id, { dueMs, done });
        });
    } catch (error) {
      failure = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    }
    ended++;
    report.tookMs.push(performance.now() - dueMs);
    if (failure !== undefined) report.failures[failure] = (report.failures[failure] ?? 0) + 1;
  };
  const startMs = performance.now();
  const all: Promise<void>[] = [];
  for (let at = 0; at < order.count; at++) {
    const dueMs = startMs + (at * MS_PER_SEC) / order.perSec;
    const earlyMs = dueMs - performance.now();
    if (earlyMs > 0) await pause(earlyMs);
    all.push(one(Math.max(dueMs, startMs), at));
  }
  await Promise.all([...all, looking]);
  return report;
}

process.on('message', async (order: HealthyOrder | 'end') => {
  if (order === 'end') {
    agent.destroy();
    process.disconnect?.();
    return;
  }
  process.send?.(await measure(order));
});
