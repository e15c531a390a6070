import { get } from '../lib/api.ts';
import { type Page, usePages } from '../lib/load.ts';
import { Link, usePlace } from '../lib/router.tsx';
import type { ClaimRecord } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { Chip, Given, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { type Column, More, Table } from '../parts/table.tsx';

/** As many as somebody looks through before they search instead. */
const LIMIT = 50;
const STATES = [
  'queued',
  'validated',
  'committed',
  'dead_letter',
  'released',
  'expired',
  'refused',
  'discarded',
];

const FILTERS = [
  { name: 'user_id', label: 'User' },
  { name: 'claim_id', label: 'Claim id' },
  { name: 'request_id', label: 'Request id' },
  { name: 'pool_id', label: 'Pool' },
  { name: 'state', label: 'State', options: STATES },
];

const COLUMNS: Column<ClaimRecord>[] = [
  {
    head: 'Claim',
    place: 'title',
    cell: ({ claim_id }) => (
      <Link class="row-link" to={`/claims/${claim_id}`}>
        <Id value={claim_id} isShort />
      </Link>
    ),
  },
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  { head: 'User', cell: ({ user_id }) => <Given value={user_id} /> },
  { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
  { head: 'Request', cell: ({ request_id }) => <Id value={request_id} isShort /> },
  { head: 'Claimed', cell: ({ claimed_at }) => <Moment at={claimed_at} /> },
  { head: 'Ended', cell: ({ ended_at }) => <Moment at={ended_at} /> },
];

export function Claims() {
  const { query } = usePlace();
  const filters = Object.fromEntries(query);
  const pages = usePages(`claims ${query}`, (after) =>
    get<Page<ClaimRecord>>('/admin/claims', { ...filters, after, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Claims" about="One buyer's hold on one slot." />
      <Filters filters={FILTERS} />
      <Await loaded={pages}>
        {(claims) =>
          claims.length === 0 ? (
            <Empty title="No claim matches">
              {query.size > 0
                ? 'Clear the search, or look for the user in another pool.'
                : 'Nobody has claimed yet.'}
            </Empty>
          ) : (
            <>
              <Table caption="Claims" rows={claims} columns={COLUMNS} keyOf={(claim) => claim.claim_id} />
              <More pages={pages} />
            </>
          )
        }
      </Await>
    </>
  );
}
