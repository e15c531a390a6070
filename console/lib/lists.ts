// Lists, page by page, and those of them whose answers are spelled differently from {items, next}.

import { useState } from 'preact/hooks';
import { type ApiError, asApiError, get, type Query } from './api.ts';
import { type Loaded, useLoad } from './load.ts';
import { usePlace } from './router.tsx';
import type { DeadLetter, EndpointRow, EventGroup, EventRow, UnnamedPayment } from './shapes.ts';

const LIMIT = 100;

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export interface Pages<Item> extends Loaded<readonly Item[]> {
  readonly hasMore: boolean;
  /** Why the list could not be continued. It is tried again only when the operator asks for more. */
  readonly moreError: ApiError | undefined;
  more(): Promise<void>;
}

/** A list, page by page. */
export function usePages<Item>(
  key: string,
  load: (after: string | undefined) => Promise<Page<Item>>,
): Pages<Item> {
  const first = useLoad(key, () => load(undefined));
  const [rest, setRest] = useState<{ of: unknown; items: readonly Item[]; next: string | null }>();
  const [failed, setFailed] = useState<{ of: unknown; error: ApiError }>();
  const own = rest !== undefined && rest.of === first.value ? rest : undefined;
  const next = own === undefined ? (first.value?.next ?? null) : own.next;
  return {
    ...first,
    value: first.value && [...first.value.items, ...(own?.items ?? [])],
    hasMore: next !== null,
    moreError: failed?.of === first.value ? failed?.error : undefined,
    async more() {
      if (next === null) return;
      try {
        const page = await load(next);
        setRest({ of: first.value, items: [...(own?.items ?? []), ...page.items], next: page.next });
        setFailed(undefined);
      } catch (cause) {
        setFailed({ of: first.value, error: asApiError(cause) });
      }
    },
  };
}

/** A list by the filters in the address. */
export function useSearch<Item>(
  name: string,
  load: (query: Record<string, string | undefined>) => Promise<Page<Item>>,
): Pages<Item> {
  const { query } = usePlace();
  return usePages(`${name} ${query}`, (after) => load({ ...Object.fromEntries(query), after }));
}

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

/** All of them, on one page. */
export async function listEndpoints(): Promise<Page<EndpointRow>> {
  const { endpoints } = await get<{ endpoints: EndpointRow[] }>('/admin/webhooks/endpoints');
  return { items: endpoints, next: null };
}

/** The largest: an operator begins with them. */
export async function listGroups(): Promise<Page<EventGroup>> {
  const { groups } = await get<{ groups: EventGroup[] }>('/admin/webhooks/groups', { limit: LIMIT });
  return { items: groups, next: null };
}

/** The first ones: those that have got their user make room for the next. */
export async function listUnnamedPayments(): Promise<Page<UnnamedPayment>> {
  const { payments } = await get<{ payments: UnnamedPayment[] }>('/admin/webhooks/payments', {
    limit: LIMIT,
  });
  return { items: payments, next: null };
}
