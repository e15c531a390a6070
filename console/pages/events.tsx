import type { Query } from '../lib/api.ts';
import { listEvents } from '../lib/lists.ts';
import { usePages } from '../lib/load.ts';
import { usePlace } from '../lib/router.tsx';
import { EVENT_STATUSES, type EventRow } from '../lib/shapes.ts';
import { DELIVERY, EVENT } from '../parts/event_columns.tsx';
import { type Filter, Filters } from '../parts/fields.tsx';
import { Chip, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { type Column, More, Table } from '../parts/table.tsx';

const HOUR_MS = 3_600_000;
const SPANS: Readonly<Record<string, number>> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS };

const FILTERS: readonly Filter[] = [
  { name: 'event_id', label: 'Event id' },
  { name: 'provider', label: 'Provider' },
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
  {
    head: 'Type',
    place: 'wide',
    cell: ({ event_type, error }) => (
      <>
        <span class="note">{event_type}</span>
        {error && <span class="muted clip">{error}</span>}
      </>
    ),
  },
  ...DELIVERY,
  { head: 'Processed', cell: ({ processed_at }) => <Moment at={processed_at} /> },
];

function queryOf({ within, ...filters }: Record<string, string>): Query {
  const span = SPANS[within ?? ''];
  return { ...filters, since: span && new Date(Date.now() - span).toISOString() };
}

export function Events() {
  const { query } = usePlace();
  const pages = usePages(`events ${query}`, (after) =>
    listEvents({ ...queryOf(Object.fromEntries(query)), after }),
  );
  return (
    <>
      <PageHead title="Events" about="What providers told us, newest first." />
      <Filters filters={FILTERS} />
      <Await loaded={pages}>
        {(events) =>
          events.length === 0 ? (
            <Empty title={query.size > 0 ? 'No event matches' : 'No event yet'}>
              {query.size > 0
                ? 'Clear the search to see all of them.'
                : 'What a provider delivers appears here.'}
            </Empty>
          ) : (
            <>
              <Table caption="Events" rows={events} columns={COLUMNS} keyOf={({ id }) => id} />
              <More pages={pages} />
            </>
          )
        }
      </Await>
    </>
  );
}
