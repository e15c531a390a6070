import { get } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { auditPlace, subjectPlace } from '../lib/links.ts';
import { type Page, useFilters, useSearch } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import type { AuditRow } from '../lib/shapes.ts';
import { Filters, Tabs } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { asJson, Code, Id, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';

const TABS = [
  ['/audit', 'Intake (DB1)'],
  ['/audit?db=2', 'Ledger (DB2)'],
] as const;

const FILTERS = [
  { name: 'actor', label: 'Who' },
  { name: 'action', label: 'Did (name in the log)' },
  { name: 'subject', label: 'To' },
  { name: 'id', label: 'Number' },
];

function Subject({ subject }: { subject: string }) {
  const to = subjectPlace(subject);
  const text = <span class="note">{subject}</span>;
  return to === undefined ? text : <Link to={to}>{text}</Link>;
}

export const auditColumns = (db: 1 | 2): Column<AuditRow>[] => [
  { head: 'When', place: 'corner', cell: ({ at }) => <Moment at={at} /> },
  {
    head: 'Who',
    cell: ({ actor }) => (
      <Link class="given" to={auditPlace(db, { actor })}>
        {actor}
      </Link>
    ),
  },
  { head: 'Did', place: 'title', cell: ({ action }) => <strong>{words(action)}</strong> },
  { head: 'To', cell: ({ subject }) => <Subject subject={subject} /> },
  {
    head: 'Why',
    place: 'wide',
    cell: ({ reason }) => <span class={reason ? 'note' : 'muted'}>{reason ?? 'no reason given'}</span>,
  },
  {
    head: 'Details',
    place: 'wide',
    cell: ({ id, details, written_by, changed }) => (
      <details>
        <summary>
          Row <Id value={String(id)} />
        </summary>
        <Code
          text={asJson({ ...details, ...(changed && { changed }), written_by })}
          label={`Details of entry ${id}`}
        />
      </details>
    ),
  },
];

export function Audit() {
  const filters = useFilters();
  const db = filters.db === '2' ? 2 : 1;
  const pages = useSearch('audit', (query) => get<Page<AuditRow>>('/admin/audit', query));
  return (
    <>
      <PageHead
        title="Audit log"
        about="What operators did, newest first. Each row was written together with the change."
      />
      <Tabs label="Which database" tabs={TABS} current={TABS[db - 1]?.[0] ?? ''} />
      <Filters filters={FILTERS} />
      <List
        caption="Audit log"
        whole={{ list: 'audit' }}
        pages={pages}
        columns={auditColumns(db)}
        keyOf={({ id, cell }) => `${cell ?? ''} ${id}`}
        // Which log it is does not make it a search.
        {...(FILTERS.some(({ name }) => name in filters) && { noMatch: 'No row of the log matches' })}
      >
        <Empty title="Nothing yet">
          Changes that operators make here or with the CLI appear in this log.
        </Empty>
      </List>
    </>
  );
}
