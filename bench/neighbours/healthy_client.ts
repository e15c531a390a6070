// A process of its own: the healthy one. Its requests come at a fixed pace, whatever became of the earlier ones, and each
// counts from the moment it was due: a neighbour that stops the product for a second delays all requests of that second.

import { createHmac, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { sampleOf } from '../../src/webhook/samples.ts';
import { HEALTHY, HEALTHY_ENV, type HealthyOrder, type HealthyReport } from './healthy.ts';

const MS_PER_SEC = 1_000;
/** One indexed look at DB2 for all that wait. Latencies of tickets and effects are that coarse. */
const LOOK_MS = 5;
const MAX_SOCKETS = 256;

const LOOK = {
  tickets:
    'select t.claim_id::text as id from public.confirmed_tickets t where t.claim_id = any ($1::uuid[])',
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
  const body = JSON.stringify({ user_id: `user ${id}`, request_id: id });
  const answer = await post(order, `/v1/pools/${HEALTHY}/claims`, {}, body);
  if (answer.status !== 201) throw new Error(`status ${answer.status}`);
  return JSON.parse(answer.body).claim_id;
}

async function deliverOnce(order: HealthyOrder): Promise<string> {
  const eventId = `evt_${randomUUID().replaceAll('-', '')}`;
  const atSec = Math.floor(Date.now() / MS_PER_SEC);
  const sample = { type: 'payment_intent.succeeded', eventId, user: `user ${eventId}`, amount: 2500, atSec };
  const body = sampleOf('stripe', sample)?.body ?? '';
  const signature = createHmac('sha256', HEALTHY_ENV.STRIPE_WEBHOOK_SECRET)
    .update(`${atSec}.${body}`)
    .digest('hex');
  const headers = { 'stripe-signature': `t=${atSec},v1=${signature}` };
  const answer = await post(order, `/webhooks/${HEALTHY}`, headers, body);
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return eventId;
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
  const text = order.kind === 'tickets' || order.kind === 'effects' ? LOOK[order.kind] : undefined;
  const looking = text === undefined ? undefined : look(order, text, waiting, () => ended === order.count);
  const one = async (dueMs: number): Promise<void> => {
    let failure: string | undefined;
    try {
      const id = await (isClaim ? claimOnce(order) : deliverOnce(order));
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
    all.push(one(Math.max(dueMs, startMs)));
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
