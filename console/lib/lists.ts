// Lists, page by page, and those of them whose answers are spelled differently from {items, next}.

import { useState } from 'preact/hooks';
import { type ApiError, asApiError, get, pathWith, type Query } from './api.ts';
import { type Loaded, useLoad } from './load.ts';
import { usePlace } from './router.tsx';
import type { DeadLetter, EndpointRow, EventRow, InboxRow, UnnamedPayment } from './shapes.ts';

const LIMIT = 100;

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Where a page of a list stands among the others, and the addresses of its neighbours. */
export interface Pager {
  readonly number: number;
  readonly next: string | undefined;
  to(number: number): string;
}

export interface Pages<Item> extends Loaded<readonly Item[]> {
  /** Where each page has an address of its own; else they are added one below the other. */
  readonly pager?: Pager;
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

/** The filters in the address, without what chooses a page. */
export function useFilters(): Record<string, string | undefined> {
  const { page: _, after: __, ...filters } = Object.fromEntries(usePlace().query);
  return filters;
}

/**
 * A page of a list, by the filters in the address. The next one begins after the last row of this, so that new rows move nothing; its
 * number goes along, and is enough by itself.
 */
export function useSearch<Item>(
  name: string,
  load: (query: Record<string, string | undefined>) => Promise<Page<Item>>,
): Pages<Item> {
  const { path, query } = usePlace();
  const filters = useFilters();
  const { page = '1', after } = Object.fromEntries(query);
  const number = Math.max(1, Number.parseInt(page, 10) || 1);
  const loaded = useLoad(`${name} ${query}`, () =>
    load({ ...filters, ...(after ? { after } : number > 1 && { page: String(number) }) }),
  );
  const next = loaded.value?.next ?? null;
  return {
    ...loaded,
    value: loaded.value?.items,
    hasMore: next !== null,
    moreError: undefined,
    more: async () => undefined,
    pager: {
      number,
      next: next === null ? undefined : pathWith(path, { ...filters, page: number + 1, after: next }),
      to: (other) => pathWith(path, { ...filters, page: other > 1 ? other : undefined }),
    },
  };
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

/** Of the inbox. */
export async function listInboxLetters(after: string | undefined): Promise<Page<InboxRow>> {
  const query = { state: 'dead_letter', after, limit: LIMIT };
  const { deliveries } = await get<{ deliveries: InboxRow[] }>('/admin/webhooks/inbox', query);
  return pageOf(deliveries, ({ msg_id }) => msg_id);
}

/** All of them, on one page. */
export async function listEndpoints(): Promise<Page<EndpointRow>> {
  const { endpoints } = await get<{ endpoints: EndpointRow[] }>('/admin/webhooks/endpoints');
  return { items: endpoints, next: null };
}

/** The first ones: those that have got their user make room for the next. */
export async function listUnnamedPayments(): Promise<Page<UnnamedPayment>> {
  const { payments } = await get<{ payments: UnnamedPayment[] }>('/admin/webhooks/payments', {
    limit: LIMIT,
  });
  return { items: payments, next: null };
}
