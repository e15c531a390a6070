// DB2 as the webhook doors and workers see it: which function of schema webhook each question is.

import type { CallFunction } from '../call_function.ts';
import { storable } from '../text.ts';
import type {
  Delivery,
  Endpoint,
  EventLane,
  Lease,
  Processed,
  Recorded,
  TakenEvent,
  WebhookStore,
} from './ports.ts';

/** `call` takes names of functions in schema webhook; `toBase64` is the runtime's own, which is the fastest. */
export function createWebhookStore(
  call: CallFunction,
  toBase64: (bytes: Uint8Array) => string,
): WebhookStore {
  return {
    findEndpoint: async (name) => (await call<Endpoint>('find_endpoint', { p_name: name }))[0],
    async record(deliveries, isBackfilled = false) {
      const rows = await call<Recorded>('record_events', {
        ...columns(deliveries, toBase64),
        p_backfilled: isBackfilled,
      });
      return byDelivery(deliveries, rows);
    },
    async processEvent(id) {
      const [row] = await call<Processed>('process_event', { p_id: id });
      if (row === undefined) throw new Error(`process_event gave no row for ${id}`);
      return row;
    },
    findReply: async (id) =>
      (await call<{ find_reply: string | null }>('find_reply', { p_id: id }))[0]?.find_reply ?? null,
    lanes: () => call<EventLane>('event_lanes', {}),
    take: (lanes, wanted) => call<TakenEvent>('take_events', { p_lanes: lanes, p_wanted: wanted }),
    takeSuspect: (lanes) => call<TakenEvent>('take_suspect', { p_lanes: lanes }),
    async process(events) {
      const rows = await call<Processed & { id: string }>('process_events', leases(events));
      return new Map(rows.map((row) => [row.id, row]));
    },
    extend: async (events) =>
      (await call<{ extend_leases: string }>('extend_leases', leases(events))).map(
        (row) => row.extend_leases,
      ),
    begin: async (id, handlerNames) =>
      (await call<TakenEvent>('begin_typescript_event', { p_id: id, p_handlers: handlerNames }))[0],
    async finish({ id, lease_token }, outcome, error) {
      const [row] = await call<{ finish_event: string }>('finish_event', {
        p_id: id,
        p_lease_token: lease_token,
        p_outcome: outcome,
        p_error: error === null ? null : storable(error),
      });
      return row?.finish_event ?? 'lost_lease';
    },
  };
}

function leases(events: readonly Lease[]): Record<string, unknown> {
  return { p_ids: events.map(({ id }) => id), p_lease_tokens: events.map(({ lease_token }) => lease_token) };
}

function columns(deliveries: readonly Delivery[], toBase64: (bytes: Uint8Array) => string) {
  const rows = deliveries.flatMap((delivery) => {
    const body = toBase64(delivery.body);
    // Several events share one body: the first row brings it, the others point to it.
    const bodyId = delivery.events.length > 1 ? crypto.randomUUID() : null;
    return delivery.events.map((event, at) => ({ delivery, event, body: at === 0 ? body : null, bodyId }));
  });
  return {
    p_webhook_ids: rows.map(({ delivery }) => delivery.webhookId),
    p_event_ids: rows.map(({ event }) => event.eventId),
    p_event_types: rows.map(({ event }) => event.eventType),
    p_occurred_at: rows.map(({ event }) => event.occurredAt),
    p_payloads: rows.map(({ event }) => event.payload),
    p_bodies: rows.map(({ body }) => body),
    p_body_ids: rows.map(({ bodyId }) => bodyId),
    p_hashes: rows.map(({ event }) => event.hash),
    p_dedupe_hashes: rows.map(({ event }) => event.dedupeHash),
    p_signatures: rows.map(({ delivery }) => delivery.signature),
    p_quarantines: rows.map(({ event }) => event.quarantine),
    ...(deliveries.some(({ receivedAt }) => receivedAt !== undefined) && {
      p_received_at: rows.map(({ delivery }) => delivery.receivedAt ?? null),
    }),
  };
}

function byDelivery(deliveries: readonly Delivery[], rows: readonly Recorded[]): Recorded[][] {
  const total = deliveries.reduce((sum, { events }) => sum + events.length, 0);
  if (rows.length !== total) throw new Error(`${total} events gave ${rows.length} rows`);
  const ordered = new Array<Recorded>(total);
  for (const row of rows) ordered[row.ordinal - 1] = row;
  let at = 0;
  return deliveries.map(({ events }) => {
    at += events.length;
    return ordered.slice(at - events.length, at);
  });
}
