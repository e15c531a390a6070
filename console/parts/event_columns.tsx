// What every list of events shows of one.

import type { ComponentChildren } from 'preact';
import type { EventRow } from '../lib/shapes.ts';
import { Given, Id, Moment } from './small.tsx';
import { type Column, linkColumn } from './table.tsx';

export const EVENT = linkColumn<EventRow>(
  'Event',
  ({ id }) => `/events/${id}`,
  ({ event_id }) => <Id value={event_id} isShort />,
);

/** The type of the event, and below it the last error. */
export function typeColumn(head: string, show: (type: string) => ComponentChildren): Column<EventRow> {
  return {
    head,
    place: 'wide',
    cell: ({ event_type, error }) => (
      <>
        {show(event_type)}
        {error && <span class="muted clip">{error}</span>}
      </>
    ),
  };
}

export const DELIVERY: readonly Column<EventRow>[] = [
  { head: 'Endpoint', cell: ({ name, provider }) => <Given value={name ?? provider} /> },
  { head: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
  { head: 'Received', cell: ({ received_at }) => <Moment at={received_at} /> },
];
