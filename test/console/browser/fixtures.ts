// Webhooks and calls as the API answers them: many kinds at once, which real providers would take a day to send.

import type { BrowserContext, Route } from 'playwright-core';
import type { CallRow, EndpointRow, EventDetails, EventRow } from '../../../console/lib/shapes.ts';

const NOW = Date.now();
const ago = (sec: number): string => new Date(NOW - sec * 1_000).toISOString();
const uuid = (n: number): string => `0198f0c4-7a11-7c3e-9b5d-${String(n).padStart(12, '0')}`;

const STRIPE = { webhook_id: uuid(1), name: 'stripe-main', provider: 'stripe' };
const TWILIO = { webhook_id: uuid(2), name: 'twilio-sms', provider: 'twilio' };

export const ENDPOINTS: readonly EndpointRow[] = [
  {
    ...STRIPE,
    mode: 'queued',
    secret_names: ['STRIPE_WEBHOOK_SECRET'],
    max_attempts: 12,
    is_active: true,
    created_at: ago(9e5),
  },
  {
    ...TWILIO,
    mode: 'inline',
    secret_names: ['TWILIO_AUTH_TOKEN'],
    max_attempts: 8,
    is_active: true,
    created_at: ago(8e5),
  },
  {
    webhook_id: uuid(3),
    name: 'whatsapp',
    provider: 'whatsapp',
    mode: 'queued',
    secret_names: ['WHATSAPP_APP_SECRET', 'WHATSAPP_APP_SECRET_OLD'],
    max_attempts: 12,
    is_active: false,
    created_at: ago(7e5),
  },
];

const event = (n: number, event_id: string, event_type: string, more: Partial<EventRow>): EventRow => ({
  id: uuid(100 + n),
  ...STRIPE,
  event_id,
  event_type,
  status: 'success',
  attempts: 1,
  takeovers: 0,
  error: null,
  occurred_at: ago(602 - n * 20),
  received_at: ago(600 - n * 20),
  processed_at: ago(599 - n * 20),
  last_attempt_at: ago(599 - n * 20),
  next_attempt_at: null,
  skipped_by: null,
  ...more,
});

const DEAD = { status: 'dead_letter', attempts: 12, processed_at: null } as const;

export const EVENTS: readonly EventRow[] = [
  event(1, 'evt_1QhZ3fL2', 'payment_intent.succeeded', {}),
  event(2, 'evt_1QhZ3kM8', 'payment_intent.succeeded', {}),
  event(3, 'evt_1QhZ4aB1', 'charge.refunded', {
    ...DEAD,
    error: 'no payment pi_3QhZ2x: the charge it refunds is unknown',
  }),
  event(4, 'SM9f0c4a7711', 'message.delivered', { ...TWILIO }),
  event(5, 'evt_1QhZ4dD7', 'invoice.paid', {
    status: 'failed',
    attempts: 3,
    processed_at: null,
    error: 'the credit service answered 502',
    next_attempt_at: ago(-40),
  }),
  event(6, 'evt_1QhZ4fF2', 'payment_intent.created', { status: 'skipped' }),
  event(7, 'evt_1QhZ4gG9', 'charge.dispute.created', {
    ...DEAD,
    error: 'no handler takes charge.dispute.created',
  }),
  event(8, 'evt_1QhZ4hH4', 'payment_intent.succeeded', {
    status: 'pending',
    attempts: 0,
    processed_at: null,
    last_attempt_at: null,
    next_attempt_at: ago(0),
  }),
];

export const DEAD_EVENT = uuid(103);

function detailsOf(row: EventRow): EventDetails {
  const payload = {
    id: row.event_id,
    type: row.event_type,
    data: { object: { id: 're_3QhZ2x', amount: 4900, currency: 'eur' } },
  };
  return {
    ...row,
    payload,
    signature: 't=1771930000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd',
    payload_hash: '5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd',
    idempotency_key: `${row.provider}:${row.event_id}`,
    lease_until: null,
    raw_body: Buffer.from(JSON.stringify(payload)).toString('base64'),
    alarms: [],
  };
}

export const CALLS: readonly CallRow[] = Array.from({ length: 6 }, (_, n) => ({
  id: uuid(200 + n),
  site_id: n % 2 === 0 ? 'berlin-desk' : 'lisbon-desk',
  event_id: `call-${4711 + n}`,
  kind: ['call.started', 'call.answered', 'call.ended'][n % 3] ?? 'call.ended',
  occurred_at: ago(90 + n * 31),
  received_at: ago(89 + n * 31),
  is_signed: n !== 4,
}));

function answerEvents(route: Route): Promise<void> {
  const { pathname, searchParams } = new URL(route.request().url());
  const id = pathname.split('/')[4];
  if (route.request().method() === 'POST') {
    const { ids, dry_run } = route.request().postDataJSON() as { ids: string[]; dry_run: boolean };
    return route.fulfill({
      json: { results: ids.map((one) => ({ id: one, outcome: dry_run ? 'would_replay' : 'replayed' })) },
    });
  }
  if (id !== undefined)
    return route.fulfill({ json: detailsOf(EVENTS.find((row) => row.id === id) ?? (EVENTS[0] as EventRow)) });
  const status = searchParams.get('status');
  return route.fulfill({
    json: { events: EVENTS.filter((row) => status === null || row.status === status) },
  });
}

/** These answers take the place of the server's. */
export async function useFixtures(context: BrowserContext): Promise<void> {
  await context.route('**/admin/webhooks/endpoints', (route) =>
    route.fulfill({ json: { endpoints: ENDPOINTS } }),
  );
  await context.route(/\/admin\/webhooks\/events/, answerEvents);
  await context.route(/\/admin\/calls/, (route) => route.fulfill({ json: { items: CALLS, next: null } }));
}
