import { get } from '../lib/api.ts';
import { issuePlace } from '../lib/links.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { Issue } from '../lib/shapes.ts';
import { type Filter, Filters } from '../parts/fields.tsx';
import { List, type ListOf } from '../parts/list.tsx';
import { Chip, Given, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { linkColumn } from '../parts/table.tsx';

const KINDS: readonly Issue['kind'][] = ['claim', 'delivery', 'event', 'question'];

const FILTERS: readonly Filter[] = [
  {
    name: 'state',
    label: 'State',
    options: [
      ['open', 'open'],
      ['resolved', 'resolved'],
    ],
  },
  { name: 'kind', label: 'Kind', options: KINDS },
  { name: 'lane', label: 'Pool, handler or endpoint' },
  { name: 'type', label: 'Type' },
];

export function IssueState({ state }: Pick<Issue, 'state'>) {
  return <Chip state={state} tone={state === 'resolved' ? 'good' : 'bad'} />;
}

const ISSUES: ListOf<Issue> = {
  caption: 'Issues',
  whole: {},
  noMatch: 'No issue matches',
  keyOf: ({ id }) => id,
  columns: [
    linkColumn(
      'Issue',
      ({ id }) => issuePlace(id),
      ({ type }) => type,
    ),
    { head: 'State', place: 'corner', cell: ({ state }) => <IssueState state={state} /> },
    {
      head: 'Why',
      place: 'wide',
      cell: ({ error }) => <span class="muted clip">{error ?? 'without a word'}</span>,
    },
    { head: 'Now', isNumber: true, cell: ({ failures }) => failures },
    {
      head: 'Lane',
      cell: ({ kind, lane }) => (
        <>
          {kind} <Given value={lane} />
        </>
      ),
    },
    {
      head: 'First, last seen',
      cell: ({ first_seen_at, last_seen_at }) => (
        <>
          <Moment at={first_seen_at} />
          <br />
          <Moment at={last_seen_at} />
        </>
      ),
    },
  ],
};

const LIMIT = 1_000;

/** Those that are open come first; all of them on one page. */
async function listIssues(query: Record<string, string | undefined>): Promise<Page<Issue>> {
  const { issues } = await get<{ issues: Issue[] }>('/admin/issues', { ...query, limit: LIMIT });
  return { items: issues, next: null };
}

export function Issues() {
  const pages = useSearch('issues', listIssues);
  return (
    <>
      <PageHead
        title="Issues"
        about="What fails, each kind of failure once. In the error # stands for an id, a number or an address, and “…” for what was quoted."
      />
      <Filters filters={FILTERS} />
      <List {...ISSUES} pages={pages}>
        <Empty title="No issues">Nothing has failed.</Empty>
      </List>
    </>
  );
}
