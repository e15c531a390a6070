import { EVENT_ACTS, LETTER_ACTS } from '../lib/acts.ts';
import { listEvents, listLetters } from '../lib/lists.ts';
import { usePages } from '../lib/load.ts';
import { Link, usePlace } from '../lib/router.tsx';
import type { DeadLetter, EventRow } from '../lib/shapes.ts';
import { Bench } from '../parts/bench.tsx';
import { DELIVERY, EVENT } from '../parts/event_columns.tsx';
import { type Filter, Filters, Tabs } from '../parts/fields.tsx';
import { Given, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';
import { Reason } from './reason.tsx';

const TABS = [
  ['/dead-letters', 'Of claims'],
  ['/dead-letters?kind=webhooks', 'Of webhooks'],
] as const;

const LETTER_FILTERS: readonly Filter[] = [
  { name: 'pool_id', label: 'Pool' },
  { name: 'reason', label: 'Reason begins with' },
  {
    name: 'older_than_sec',
    label: 'Older than',
    options: [
      ['60', 'a minute'],
      ['3600', 'an hour'],
      ['86400', 'a day'],
    ],
  },
];

const LETTER_COLUMNS: Column<DeadLetter>[] = [
  {
    head: 'Letter',
    place: 'title',
    cell: ({ msg_id }) => (
      <Link class="row-link" to={`/dead-letters/${msg_id}`}>
        #{msg_id}
      </Link>
    ),
  },
  {
    head: 'Why',
    place: 'wide',
    cell: ({ reason }) => <Reason reason={reason} />,
  },
  { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
  { head: 'User', cell: ({ user_id }) => <Given value={user_id} /> },
  { head: 'Deliveries', isNumber: true, cell: ({ final_read_ct }) => final_read_ct },
  { head: 'Dead since', cell: ({ dead_since }) => <Moment at={dead_since} /> },
];

function Letters() {
  const { query } = usePlace();
  const pages = usePages(`letters ${query}`, (after) => listLetters({ ...Object.fromEntries(query), after }));
  return (
    <>
      <Filters filters={LETTER_FILTERS} />
      <Await loaded={pages}>
        {(letters) =>
          letters.length === 0 ? (
            <Empty title={query.size > 0 ? 'No dead letter matches' : 'No dead letters'}>
              {query.size > 0
                ? 'Clear the search to see all of them.'
                : 'Every claim found its way, or still finds it.'}
            </Empty>
          ) : (
            <Bench
              caption="Dead letters of claims"
              pages={pages}
              rows={letters}
              columns={LETTER_COLUMNS}
              keyOf={({ msg_id }) => String(msg_id)}
              nameOf={({ msg_id }) => `letter ${msg_id}`}
              acts={LETTER_ACTS}
            />
          )
        }
      </Await>
    </>
  );
}

const EVENT_FILTERS: readonly Filter[] = [
  { name: 'provider', label: 'Provider' },
  { name: 'event_id', label: 'Event id' },
];

const EVENT_COLUMNS: Column<EventRow>[] = [
  EVENT,
  {
    head: 'Why',
    place: 'wide',
    cell: ({ error, event_type }) => (
      <>
        <strong class="note">{event_type}</strong>
        {error && <span class="muted clip">{error}</span>}
      </>
    ),
  },
  ...DELIVERY,
];

function Events() {
  const { query } = usePlace();
  const provider = query.get('provider') ?? '';
  const event_id = query.get('event_id') ?? '';
  const pages = usePages(`dead events ${query}`, (after) =>
    listEvents({ status: 'dead_letter', provider, event_id, after }),
  );
  return (
    <>
      <Filters filters={EVENT_FILTERS} />
      <Await loaded={pages}>
        {(events) =>
          events.length === 0 ? (
            <Empty title="No dead letters">Every event took effect, or still finds its way.</Empty>
          ) : (
            <Bench
              caption="Dead letters of webhooks"
              pages={pages}
              rows={events}
              columns={EVENT_COLUMNS}
              keyOf={({ id }) => id}
              nameOf={({ event_id: name }) => `event ${name}`}
              acts={EVENT_ACTS}
            />
          )
        }
      </Await>
    </>
  );
}

export function DeadLetters() {
  const isWebhooks = usePlace().query.get('kind') === 'webhooks';
  return (
    <>
      <PageHead
        title="Dead letters"
        about="Work that will not succeed by retrying. Find out why, repair it, then replay."
      />
      <Tabs label="Which dead letters" tabs={TABS} current={TABS[isWebhooks ? 1 : 0][0]} />
      {isWebhooks ? <Events /> : <Letters />}
    </>
  );
}
