// Lists whose answers are spelled differently from {items, next}.

import { get, type Query } from './api.ts';
import type { Page } from './load.ts';
import type { DeadLetter, EndpointRow, EventRow } from './shapes.ts';

const LIMIT = 100;

function pageOf<Item>(items: readonly Item[], keyOf: (last: Item) => string | number): Page<Item> {
  const last = items.at(-1);
  return { items, next: last !== undefined && items.length === LIMIT ? String(keyOf(last)) : null };
}

export async function listLetters(query: Query): Promise<Page<DeadLetter>> {
  const { messages } = await get<{ messages: DeadLetter[] }>('/admin/dlq', { ...query, limit: LIMIT });
  return pageOf(messages, ({ msg_id }) => msg_id);
}

export async function listEvents(query: Query): Promise<Page<EventRow>> {
  const { events } = await get<{ events: EventRow[] }>('/admin/webhooks/events', { ...query, limit: LIMIT });
  return pageOf(events, ({ id }) => id);
}

export async function listEndpoints(): Promise<EndpointRow[]> {
  return (await get<{ endpoints: EndpointRow[] }>('/admin/webhooks/endpoints')).endpoints;
}
