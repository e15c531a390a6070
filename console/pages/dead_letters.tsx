import { useEffect } from 'preact/hooks';
import { EVENT_ACTS, LETTER_ACTS } from '../lib/acts.ts';
import { listEvents, listLetters, useFilters, useSearch } from '../lib/lists.ts';
import { usePlace } from '../lib/router.tsx';
import type { DeadLetter, EventRow } from '../lib/shapes.ts';
import { DELIVERY, EVENT, typeColumn } from '../parts/event_columns.tsx';
import { type Filter, Filters, Tabs } from '../parts/fields.tsx';
import { List, type ListOf } from '../parts/list.tsx';
import { Given, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { linkColumn } from '../parts/table.tsx';
import { Reason } from './dead_letter.tsx';
import { InboxLetters } from './inbox_letters.tsx';

const TABS = [
  ['/dead-letters', 'Of claims'],
  ['/dead-letters?kind=webhooks', 'Of webhooks'],
  ['/dead-letters?kind=inbox', 'Of the inbox'],
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

const LETTERS: ListOf<DeadLetter> = {
  caption: 'Dead letters of claims',
  whole: { list: 'dead-letters' },
  noMatch: 'No dead letter matches',
  acts: LETTER_ACTS,
  keyOf: ({ msg_id }) => String(msg_id),
  nameOf: ({ msg_id }) => `letter ${msg_id}`,
  columns: [
    linkColumn(
      'Letter',
      ({ msg_id }) => `/dead-letters/${msg_id}`,
      ({ msg_id }) => `#${msg_id}`,
    ),
    {
      head: 'Why',
      place: 'wide',
      cell: ({ reason, ending }) => (
        <>
          <Reason reason={reason} />
          {ending && <span class="note"> discarded, waits for the ledger</span>}
        </>
      ),
    },
    { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
    { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
    { head: 'Deliveries', isNumber: true, cell: ({ final_read_ct }) => final_read_ct },
    { head: 'Dead since', cell: ({ dead_since }) => <Moment at={dead_since} /> },
  ],
};

/** How often the page looks again while a discarded letter waits for the ledger: half of what that takes at most. */
const ENDING_MS = 1_000;

function Letters() {
  const pages = useSearch('letters', listLetters);
  useEffect(() => {
    if (!pages.value?.some(({ ending }) => ending)) return;
    const timer = setTimeout(pages.reload, ENDING_MS);
    return () => clearTimeout(timer);
  }, [pages.value, pages.reload]);
  return (
    <>
      <Filters filters={LETTER_FILTERS} />
      <List {...LETTERS} pages={pages}>
        <Empty title="No dead letters">
          Every claim became a ticket or ended, or a worker is still carrying it.
        </Empty>
      </List>
    </>
  );
}

const EVENT_FILTERS: readonly Filter[] = [
  { name: 'provider', label: 'Provider' },
  { name: 'event_id', label: 'Event id' },
  { name: 'type', label: 'Type' },
  { name: 'error', label: 'Error' },
];

const EVENTS: ListOf<EventRow> = {
  caption: 'Dead letters of webhooks',
  acts: EVENT_ACTS,
  keyOf: ({ id }) => id,
  nameOf: ({ event_id }) => `event ${event_id}`,
  columns: [EVENT, typeColumn('Why', (type) => <strong class="note">{type}</strong>), ...DELIVERY],
};

function Events() {
  const pages = useSearch('dead events', ({ kind: _, ...query }) =>
    listEvents({ ...query, status: 'dead_letter' }),
  );
  const { kind: _, ...filters } = useFilters();
  return (
    <>
      <Filters filters={EVENT_FILTERS} />
      <List
        {...EVENTS}
        pages={pages}
        whole={{ list: 'events', filters: { ...filters, status: 'dead_letter' } }}
      >
        <Empty title="No dead letters">Every event took effect, or a worker is still processing it.</Empty>
      </List>
    </>
  );
}

export function DeadLetters() {
  const kind = usePlace().query.get('kind');
  const shown = kind === 'inbox' ? 2 : kind === 'webhooks' ? 1 : 0;
  return (
    <>
      <PageHead
        title="Dead letters"
        about="Work that will not succeed by retrying. Find out why, repair it, then replay."
      />
      <Tabs label="Which dead letters" tabs={TABS} current={TABS[shown][0]} />
      {shown === 0 && <Letters />}
      {shown === 1 && <Events />}
      {shown === 2 && <InboxLetters />}
    </>
  );
}
