import { get } from '../lib/api.ts';
import { type Page, usePages } from '../lib/load.ts';
import { Link, usePlace } from '../lib/router.tsx';
import type { CallRow } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { Chip, Given, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { type Column, More, Table } from '../parts/table.tsx';

const FILTERS = [
  { name: 'site_id', label: 'Site' },
  { name: 'event_id', label: 'Event id' },
  { name: 'kind', label: 'Kind' },
];

const COLUMNS: Column<CallRow>[] = [
  {
    head: 'Call',
    place: 'title',
    cell: ({ id }) => (
      <Link class="row-link" to={`/calls/${id}`}>
        <Id value={id} isShort />
      </Link>
    ),
  },
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
  const { query } = usePlace();
  const filters = Object.fromEntries(query);
  const pages = usePages(`calls ${query}`, (after) =>
    get<Page<CallRow>>('/admin/calls', { ...filters, after }),
  );
  return (
    <>
      <PageHead title="Calls" about="Signed call events, each recorded once, newest first." />
      <Filters filters={FILTERS} />
      <Await loaded={pages}>
        {(calls) =>
          calls.length === 0 ? (
            <Empty title={query.size > 0 ? 'No call matches' : 'No call yet'}>
              {query.size > 0 ? 'Clear the search to see all of them.' : 'What call sites send appears here.'}
            </Empty>
          ) : (
            <>
              <Table caption="Calls" rows={calls} columns={COLUMNS} keyOf={({ id }) => id} />
              <More pages={pages} />
            </>
          )
        }
      </Await>
    </>
  );
}
