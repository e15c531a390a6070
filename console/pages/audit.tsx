import { get } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { type Page, usePages } from '../lib/lists.ts';
import { usePlace } from '../lib/router.tsx';
import type { AuditRow } from '../lib/shapes.ts';
import { Tabs } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { asJson, Code, Given, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';

const TABS = [
  ['/audit', 'Intake (DB1)'],
  ['/audit?db=2', 'Ledger (DB2)'],
] as const;

const COLUMNS: Column<AuditRow>[] = [
  { head: 'When', place: 'corner', cell: ({ at }) => <Moment at={at} /> },
  { head: 'Who', cell: ({ actor }) => <Given value={actor} /> },
  { head: 'Did', place: 'title', cell: ({ action }) => <strong>{words(action)}</strong> },
  { head: 'To', cell: ({ subject }) => <span class="note">{subject}</span> },
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
        <summary>Details</summary>
        <Code
          text={asJson({ ...details, ...(changed && { changed }), written_by })}
          label={`Details of entry ${id}`}
        />
      </details>
    ),
  },
];

export function Audit() {
  const db = usePlace().query.get('db') === '2' ? 2 : 1;
  const pages = usePages(`audit ${db}`, (after) => get<Page<AuditRow>>('/admin/audit', { db, after }));
  return (
    <>
      <PageHead
        title="Audit log"
        about="What operators did, newest first. Each row was written together with the change."
      />
      <Tabs label="Which database" tabs={TABS} current={TABS[db - 1]?.[0] ?? ''} />
      <List caption="Audit log" pages={pages} columns={COLUMNS} keyOf={({ id }) => String(id)}>
        <Empty title="Nothing yet">
          Changes that operators make here or with the CLI appear in this log.
        </Empty>
      </List>
    </>
  );
}
