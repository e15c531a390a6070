import { ORDER_STATUSES } from '../../db1/supabase/functions/_shared/console/order_shapes.ts';
import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import { get } from '../lib/api.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { OrderRow } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Given, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';

const LIMIT = 50;

const FILTERS = [
  { name: 'pool_id', label: 'Pool' },
  { name: 'user_id', label: 'User' },
  { name: 'status', label: 'Status', options: ORDER_STATUSES },
];

export const ORDER_COLUMNS: Column<OrderRow>[] = [
  linkColumn(
    'Order',
    ({ order_id }) => `/orders/${order_id}`,
    ({ order_id }) => <Id value={order_id} isShort />,
  ),
  { head: 'Status', place: 'corner', cell: ({ status }) => <Chip state={status} /> },
  { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
  { head: 'Pool', cell: ({ pool_id }) => <Given value={pool_id} /> },
  { head: 'Seats', isNumber: true, cell: ({ seats }) => seats },
  { head: 'Amount', isNumber: true, cell: ({ amount, currency }) => moneyOf(amount, currency) },
  { head: 'Ordered', cell: ({ ordered_at }) => <Moment at={ordered_at} /> },
];

export function Orders() {
  const pages = useSearch('orders', (query) =>
    get<Page<OrderRow>>('/admin/orders', { ...query, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Orders" about="The seats that one buyer pays for together." />
      <Filters filters={FILTERS} />
      <List
        caption="Orders"
        whole={{ list: 'orders' }}
        pages={pages}
        columns={ORDER_COLUMNS}
        keyOf={({ order_id }) => order_id}
        noMatch="No order matches"
      >
        <Empty title="No orders yet">Pools that are confirmed by payment have them.</Empty>
      </List>
    </>
  );
}
