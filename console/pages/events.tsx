import type { Query } from '../lib/api.ts';
import { listEvents, useFilters, useSearch } from '../lib/lists.ts';
import { EVENT_STATUSES, type EventRow } from '../lib/shapes.ts';
import { DELIVERY, EVENT, typeColumn } from '../parts/event_columns.tsx';
import { type Filter, Filters } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SPANS: Readonly<Record<string, number>> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS };

const FILTERS: readonly Filter[] = [
  { name: 'event_id', label: 'Event id' },
  { name: 'provider', label: 'Provider' },
  { name: 'type', label: 'Type' },
  { name: 'error', label: 'Error' },
  { name: 'status', label: 'State', options: EVENT_STATUSES },
  {
    name: 'within',
    label: 'Received within',
    options: [
      ['hour', 'the last hour'],
      ['day', 'the last day'],
      ['week', 'the last week'],
    ],
  },
  { name: 'webhook_id', label: 'Endpoint id' },
];

const COLUMNS: Column<EventRow>[] = [
  EVENT,
  { head: 'State', place: 'corner', cell: ({ status }) => <Chip state={status} /> },
  typeColumn('Type', (type) => <span class="note">{type}</span>),
  ...DELIVERY,
  { head: 'Processed', cell: ({ processed_at }) => <Moment at={processed_at} /> },
];

function withSince({ within, ...filters }: Record<string, string | undefined>): Query {
  const span = SPANS[within ?? ''];
  // By the minute, so that the same question has the same address.
  const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  return { ...filters, since: span && new Date(minute - span).toISOString() };
}

export function Events() {
  const pages = useSearch('events', (query) => listEvents(withSince(query)));
  const filters = useFilters();
  return (
    <>
      <PageHead
        title="Events"
        about="What providers delivered, newest first. Deliveries that the server refused are not listed."
      />
      <Filters filters={FILTERS} />
      <List
        caption="Events"
        whole={{ list: 'events', filters: withSince(filters) }}
        pages={pages}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        noMatch="No event matches"
      >
        <Empty title="No event yet">
          Deliveries of providers appear here. The server keeps nothing of a delivery that it refuses: for a
          wrong signature, or because it misses the secret.
        </Empty>
      </List>
    </>
  );
}
