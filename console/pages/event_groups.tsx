import { pathWith } from '../lib/api.ts';
import { listGroups, usePages } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import type { EventGroup } from '../lib/shapes.ts';
import { List } from '../parts/list.tsx';
import { Given, Moment } from '../parts/small.tsx';
import type { Column } from '../parts/table.tsx';

const COLUMNS: Column<EventGroup>[] = [
  {
    head: 'Events',
    place: 'title',
    cell: ({ events, event_type: type, error }) => (
      <Link to={pathWith('/events', { type, error: error ?? undefined })}>{events}</Link>
    ),
  },
  {
    head: 'Dead letters',
    place: 'corner',
    isNumber: true,
    cell: ({ dead_letters, event_type: type, error }) =>
      dead_letters > 0 ? (
        <Link to={pathWith('/dead-letters', { kind: 'webhooks', type, error: error ?? undefined })}>
          {dead_letters}
        </Link>
      ) : (
        0
      ),
  },
  {
    head: 'Why',
    place: 'wide',
    cell: ({ event_type, error, example_id }) => (
      <>
        <strong class="note">{event_type}</strong>
        {error && <span class="muted clip">{error}</span>}
        <Link to={`/events/${example_id}`}>An example</Link>
      </>
    ),
  },
  { head: 'Handler', cell: ({ handler }) => <Given value={handler} /> },
  { head: 'First seen', cell: ({ first_seen_at }) => <Moment at={first_seen_at} /> },
  { head: 'Last seen', cell: ({ last_seen_at }) => <Moment at={last_seen_at} /> },
];

/** Events that failed alike, by handler, type and shape of the error. Nothing where all is well. */
export function EventGroups() {
  const pages = usePages('groups', listGroups);
  if (pages.value?.length === 0) return null;
  return (
    <section aria-labelledby="failures">
      <h2 id="failures">Failures</h2>
      <p class="about">
        Events that failed alike. In the error # stands for an id or a number, and “…” for what was quoted.
      </p>
      <List
        caption="Failed events and dead letters in groups"
        pages={pages}
        columns={COLUMNS}
        keyOf={({ example_id }) => example_id}
      >
        {null}
      </List>
    </section>
  );
}
