// A verified delivery on its way through the inbox: what the door would have given to record_events or record_calls, and when
// it came. Recording it later is then the same as recording it then, with the same keys.

import type { Call } from '../calls/store.ts';
import type { Delivery, Endpoint } from '../webhook/ports.ts';
import type { ReadEvent } from '../webhook/provider.ts';

interface Accepted {
  /** The endpoint's name, or the site's id. */
  readonly door: string;
  /** When the door had the whole request, in ISO 8601. */
  readonly received_at: string;
  /** What the sender calls its events, for operators. */
  readonly ids: readonly string[];
}

export interface EventMessage extends Accepted {
  readonly kind: 'event';
  readonly webhook_id: string;
  readonly provider: string;
  readonly signature: string | null;
  readonly events: readonly ReadEvent[];
  /** In base64. */
  readonly body: string;
}

export interface CallMessage extends Accepted {
  readonly kind: 'call';
  readonly call: Call;
}

export type InboxMessage = EventMessage | CallMessage;

/** A POST may hold a thousand events; a few of their ids tell operators which it is. */
const MAX_IDS = 20;

export function eventMessage(
  { name, provider }: Endpoint,
  { webhookId, events, body, signature }: Delivery,
  receivedAt: string,
  toBase64: (bytes: Uint8Array) => string,
): EventMessage {
  return {
    kind: 'event',
    door: name,
    received_at: receivedAt,
    ids: events.slice(0, MAX_IDS).map(({ eventId }) => eventId),
    webhook_id: webhookId,
    provider,
    signature,
    events,
    body: toBase64(body),
  };
}

export function deliveryOf(message: EventMessage, fromBase64: (text: string) => Uint8Array): Delivery {
  const { webhook_id, events, signature, received_at } = message;
  return {
    webhookId: webhook_id,
    events,
    body: fromBase64(message.body),
    signature,
    receivedAt: received_at,
  };
}

export function callMessage(call: Call, receivedAt: string): CallMessage {
  const { siteId, eventId } = call;
  return {
    kind: 'call',
    door: siteId,
    received_at: receivedAt,
    ids: eventId === null ? [] : [eventId],
    call,
  };
}
