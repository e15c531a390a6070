import { get } from '../lib/api.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { CallRow } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Given, Id, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';

const FILTERS = [
  { name: 'site_id', label: 'Site' },
  { name: 'event_id', label: 'Event id' },
  { name: 'kind', label: 'Kind' },
];

const COLUMNS: Column<CallRow>[] = [
  linkColumn(
    'Call',
    ({ id }) => `/calls/${id}`,
    ({ id }) => <Id value={id} isShort />,
  ),
  {
    head: 'Kind',
    cell: ({ kind }) => (
      <strong>
        <Given value={kind} />
      </strong>
    ),
  },
  { head: 'Site', cell: ({ site_id }) => <Given value={site_id} /> },
  { head: 'Event id', cell: ({ event_id }) => <Id value={event_id} isShort /> },
  {
    head: 'Signature',
    place: 'corner',
    cell: ({ is_signed }) => <Chip state={is_signed ? 'signed' : 'unsigned'} />,
  },
  { head: 'Happened', cell: ({ occurred_at }) => <Moment at={occurred_at} /> },
  { head: 'Received', cell: ({ received_at }) => <Moment at={received_at} /> },
];

export function Calls() {
  const pages = useSearch('calls', (query) => get<Page<CallRow>>('/admin/calls', query));
  return (
    <>
      <PageHead title="Calls" about="Signed call events, each recorded once, newest first." />
      <Filters filters={FILTERS} />
      <List
        caption="Calls"
        whole={{ list: 'calls' }}
        pages={pages}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        noMatch="No call matches"
      >
        <Empty title="No call yet">Call events appear here.</Empty>
      </List>
    </>
  );
}
