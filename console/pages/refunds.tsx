import { REFUND_STATES } from '../../db1/supabase/functions/_shared/console/order_shapes.ts';
import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import { REFUND_ACTS } from '../lib/acts.ts';
import { get } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { paymentPlace } from '../lib/links.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import { Link } from '../lib/router.tsx';
import type { RefundRow } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { List, type ListOf } from '../parts/list.tsx';
import { Chip, Id, Moment, PageHead } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';

const FILTERS = [{ name: 'state', label: 'State', options: REFUND_STATES }];

const REFUNDS: ListOf<RefundRow> = {
  caption: 'Refunds',
  whole: { list: 'refunds' },
  noMatch: 'No refund matches',
  acts: REFUND_ACTS,
  keyOf: ({ id }) => id,
  nameOf: ({ id }) => `refund ${id}`,
  columns: [
    {
      head: 'Payment',
      place: 'title',
      cell: ({ payment_key }) => <Id value={payment_key} to={paymentPlace(payment_key)} />,
    },
    { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
    { head: 'Amount', isNumber: true, cell: ({ amount, currency }) => moneyOf(amount, currency) },
    {
      head: 'Why',
      place: 'wide',
      cell: ({ reason, error }) => (
        <>
          {words(reason)}
          {error !== null && <span class="note"> {error}</span>}
        </>
      ),
    },
    {
      head: 'Order',
      cell: ({ order_id }) =>
        order_id === null ? (
          <span class="muted">none</span>
        ) : (
          <Link to={`/orders/${order_id}`}>
            <Id value={order_id} isShort />
          </Link>
        ),
    },
    { head: 'Owed since', cell: ({ created_at }) => <Moment at={created_at} /> },
  ],
};

export function Refunds() {
  const pages = useSearch('refunds', (query) => get<Page<RefundRow>>('/admin/refunds', query));
  return (
    <>
      <PageHead
        title="Refunds"
        about="Money that is owed. What is due is sent by itself; what is in review waits for an operator."
      />
      <Filters filters={FILTERS} />
      <List {...REFUNDS} pages={pages}>
        <Empty title="No refund is owed">Payments that could not buy their seats appear here.</Empty>
      </List>
    </>
  );
}
