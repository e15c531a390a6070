import { get } from '../lib/api.ts';
import { orderPlace, ticketPlace } from '../lib/links.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { TicketRow } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Given, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';

const LIMIT = 50;

const FILTERS = [
  { name: 'pool_id', label: 'Pool' },
  { name: 'user_id', label: 'User' },
  { name: 'claim_id', label: 'Claim id' },
  { name: 'order_id', label: 'Order id' },
  { name: 'state', label: 'State', options: ['valid', 'void'] },
];

export const TICKET_COLUMNS: Column<TicketRow>[] = [
  linkColumn(
    'Ticket',
    ({ claim_id }) => ticketPlace(claim_id),
    ({ claim_id }) => <Id value={claim_id} isShort />,
  ),
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
  { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
  {
    head: 'Order',
    cell: ({ order_id }) => <Id value={order_id} isShort to={order_id ? orderPlace(order_id) : undefined} />,
  },
  { head: 'Committed', cell: ({ confirmed_at }) => <Moment at={confirmed_at} /> },
  { head: 'Used', cell: ({ used_at }) => <Moment at={used_at} /> },
];

export function Tickets() {
  const pages = useSearch('tickets', (query) =>
    get<Page<TicketRow>>('/admin/tickets', { ...query, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Tickets" about="Claims that are committed in the ledger, newest first." />
      <Filters filters={FILTERS} />
      <List
        caption="Tickets"
        whole={{ list: 'tickets' }}
        pages={pages}
        columns={TICKET_COLUMNS}
        keyOf={({ claim_id }) => claim_id}
        noMatch="No ticket matches"
      >
        <Empty title="No ticket yet">A claim becomes a ticket when the ledger has it.</Empty>
      </List>
    </>
  );
}
