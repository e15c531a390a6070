import { get } from '../lib/api.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import { usePlace } from '../lib/router.tsx';
import type { ClaimRecord } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Given, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';

/** As many as an operator looks through before they search instead. */
const LIMIT = 50;
const STATES = [
  'held',
  'queued',
  'validated',
  'committed',
  'dead_letter',
  'released',
  'expired',
  'refused',
  'discarded',
  'voided',
];

const FILTERS = [
  { name: 'user_id', label: 'User' },
  { name: 'claim_id', label: 'Claim id' },
  { name: 'request_id', label: 'Request id' },
  { name: 'pool_id', label: 'Pool' },
  { name: 'state', label: 'State', options: STATES },
];

export const CLAIM_COLUMNS: Column<ClaimRecord>[] = [
  linkColumn(
    'Claim',
    ({ claim_id }) => `/claims/${claim_id}`,
    ({ claim_id }) => <Id value={claim_id} isShort />,
  ),
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
  { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
  { head: 'Request', cell: ({ request_id }) => <Id value={request_id} /> },
  { head: 'Claimed', cell: ({ claimed_at }) => <Moment at={claimed_at} /> },
  { head: 'Ended', cell: ({ ended_at }) => <Moment at={ended_at} /> },
];

export function Claims() {
  const isSearch = usePlace().query.size > 0;
  const pages = useSearch('claims', (query) =>
    get<Page<ClaimRecord>>('/admin/claims', { ...query, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Claims" about="One buyer's hold on one slot." />
      <Filters filters={FILTERS} />
      <List
        caption="Claims"
        whole={{ list: 'claims' }}
        pages={pages}
        columns={CLAIM_COLUMNS}
        keyOf={({ claim_id }) => claim_id}
      >
        <Empty title="No claim matches">
          {isSearch ? 'Clear the search, or look for the user in another pool.' : 'No buyer has claimed yet.'}
        </Empty>
      </List>
    </>
  );
}
