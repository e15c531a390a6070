// Webhooks and calls as they really come: samples, signed as their senders would, through the doors.

import assert from 'node:assert/strict';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { processOnce } from '../../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../../src/webhook/handlers.ts';
import { sampleOf } from '../../../src/webhook/samples.ts';
import {
  addSites,
  callBody,
  OTHER_SECRET,
  OTHER_SITE,
  post as postCall,
  signedRequest,
} from '../../calls/support.ts';
import { memoryLog } from '../../core/support.ts';
import { ADMIN_KEY, ask, bearer, openClient } from '../../server/support.ts';
import { SECRET_NAMES, send } from '../../webhook/world.ts';
import type { House } from './support.ts';

const SENT_AT_SEC = 1_770_000_000;

/** To the endpoint of the provider's name, unless another is named. `isBad`: no retry can mend its currency. */
export async function deliver(
  { url }: House,
  provider: string,
  type: string,
  eventId: string,
  { user = 'ann', endpoint = provider, isBad = false } = {},
): Promise<void> {
  const sample = sampleOf(provider, { type, eventId, user, amount: 4900, atSec: SENT_AT_SEC });
  assert(sample !== undefined, provider);
  const answer = await send({
    url: `${url}/webhooks/${endpoint}`,
    provider,
    body: isBad ? sample.body.replace('"eur"', '"eu"') : sample.body,
    headers: { 'content-type': sample.contentType, ...sample.headers },
  });
  assert.equal(answer.status, 200, answer.text);
}

/** What workers do until nothing is due. */
export async function processEvents({ db2Url }: House): Promise<void> {
  const options = { workers: 1, batchSize: 100, handlers: NO_HANDLERS, metrics: NO_METRICS };
  await processOnce({ db2Url, ...options, log: memoryLog() }, new AbortController().signal);
}

export async function addEndpoint(
  { url }: House,
  name: string,
  provider: string,
  settings: Record<string, unknown> = {},
): Promise<void> {
  const body = { name, provider, secret_names: [SECRET_NAMES[provider]], ...settings };
  const headers = bearer(ADMIN_KEY);
  const added = await ask(`${url}/admin/webhooks/endpoints`, { method: 'POST', headers, body });
  assert.equal(added.status, 201, added.text);
}

/** With a connection of its own: the ledger may be stopped later. */
export async function onLedger<Result>(
  { db2Url }: House,
  work: (db2: pg.Client) => Promise<Result>,
): Promise<Result> {
  const db2 = await openClient(db2Url);
  try {
    return await work(db2);
  } finally {
    await db2.end();
  }
}

/** Events in every state, and calls of three sites. */
export async function seedDeliveries(house: House): Promise<void> {
  await addEndpoint(house, 'stripe', 'stripe');
  await addEndpoint(house, 'stripe-test-mode', 'stripe');
  await addEndpoint(house, 'twilio', 'twilio', { mode: 'inline' });
  await addEndpoint(house, 'whatsapp', 'whatsapp', { is_active: false });
  await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_1QhZ3fL2');
  await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_1QhZ3kM8', { user: 'bob' });
  await deliver(house, 'stripe', 'customer.created', 'evt_1QhZ4fF2');
  await deliver(house, 'twilio', 'message.delivered', 'SM9f0c4a7711');
  await deliver(house, 'stripe', 'charge.dispute.created', 'evt_1QhZ4dD7');
  for (const id of ['evt_1QhZ4aB1', 'evt_1QhZ4gG9'])
    await deliver(house, 'stripe', 'charge.refunded', id, { endpoint: 'stripe-test-mode', isBad: true });
  await processEvents(house);
  await deliver(house, 'stripe', 'payment_intent.succeeded', 'evt_1QhZ4hH4');
  await seedCalls(house);
}

async function seedCalls(house: House): Promise<void> {
  const { url } = house;
  await onLedger(house, addSites);
  for (const [number, kind] of ['ring', 'answer', 'hangup'].entries()) {
    const body = callBody({ kind, event_id: `call-${4711 + number}`, payload: { line: number } });
    assert.equal((await postCall(url, signedRequest(body))).status, 200);
  }
  const other = signedRequest(callBody({ event_id: 'call-1' }), { site: OTHER_SITE, secret: OTHER_SECRET });
  assert.equal((await postCall(url, other)).status, 200);
}
