// Deliveries that were accepted while the ledger was away, and that it refused afterwards.

import { INBOX_ACTS } from '../lib/acts.ts';
import { endpointPlace, sitePlace } from '../lib/links.ts';
import { listInboxLetters, usePages } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import type { InboxRow } from '../lib/shapes.ts';
import { List, type ListOf } from '../parts/list.tsx';
import { Given, Moment } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';

const DELIVERIES: ListOf<InboxRow> = {
  caption: 'Dead letters of the inbox',
  whole: {},
  acts: INBOX_ACTS,
  keyOf: ({ msg_id }) => String(msg_id),
  nameOf: ({ msg_id }) => `delivery ${msg_id}`,
  columns: [
    {
      head: 'From',
      place: 'title',
      cell: ({ kind, door }) => (
        <Link to={kind === 'call' ? sitePlace(door) : endpointPlace(door)}>
          <Given value={door} />
        </Link>
      ),
    },
    {
      head: 'Why',
      place: 'wide',
      cell: ({ error }) => <span class="note">{error ?? 'not known'}</span>,
    },
    { head: 'Delivery', isNumber: true, cell: ({ msg_id }) => msg_id },
    { head: 'Kind', place: 'corner', cell: ({ kind }) => kind },
    {
      head: 'What',
      place: 'wide',
      cell: ({ ids }) => <span class="clip">{ids.join(', ')}</span>,
    },
    { head: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
    { head: 'Received', cell: ({ received_at }) => <Moment at={received_at} /> },
    { head: 'Dead since', cell: ({ dead_since }) => <Moment at={dead_since} /> },
  ],
};

export function InboxLetters() {
  const pages = usePages('inbox letters', listInboxLetters);
  return (
    <List {...DELIVERIES} pages={pages}>
      <Empty title="No dead letters">The ledger took every delivery that the inbox accepted.</Empty>
    </List>
  );
}
