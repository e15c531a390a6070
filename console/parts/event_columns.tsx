// What every list of events shows of one.

import { Link } from '../lib/router.tsx';
import type { EventRow } from '../lib/shapes.ts';
import { Given, Id, Moment } from './small.tsx';
import type { Column } from './table.tsx';

export const EVENT: Column<EventRow> = {
  head: 'Event',
  place: 'title',
  cell: ({ id, event_id }) => (
    <Link class="row-link" to={`/events/${id}`}>
      <Id value={event_id} isShort />
    </Link>
  ),
};

export const DELIVERY: readonly Column<EventRow>[] = [
  { head: 'Endpoint', cell: ({ name, provider }) => <Given value={name ?? provider} /> },
  { head: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { head: 'Received', cell: ({ received_at }) => <Moment at={received_at} /> },
];
