import { PAYMENT_STATES } from '../../db1/supabase/functions/_shared/console/payments.ts';
import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import { get } from '../lib/api.ts';
import { UNKNOWN } from '../lib/format.ts';
import { orderPlace, paymentPlace } from '../lib/links.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { PaymentRow } from '../lib/shapes.ts';
import { Filters, Tabs } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Chip, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import { type Column, linkColumn } from '../parts/table.tsx';

const LIMIT = 50;
export const MONEY_TABS = [
  ['/payments', 'Payments'],
  ['/credits', 'Credits'],
] as const;

const FILTERS = [
  { name: 'provider', label: 'Tenant' },
  { name: 'user_id', label: 'User' },
  { name: 'state', label: 'State', options: PAYMENT_STATES },
];

/** A payment has no currency until an event tells one. */
export const amountOf = (amount: number | null, currency: string | null): string =>
  amount === null ? UNKNOWN : currency === null ? String(amount) : moneyOf(amount, currency);

export const PAYMENT_COLUMNS: Column<PaymentRow>[] = [
  linkColumn(
    'Payment',
    ({ payment_key }) => paymentPlace(payment_key),
    ({ payment_key }) => <Id value={payment_key} />,
  ),
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
  { head: 'Captured', isNumber: true, cell: ({ captured, currency }) => amountOf(captured, currency) },
  { head: 'Refunded', isNumber: true, cell: ({ refunded, currency }) => amountOf(refunded, currency) },
  {
    head: 'Order',
    cell: ({ order_id }) => <Id value={order_id} isShort to={order_id ? orderPlace(order_id) : undefined} />,
  },
  { head: 'Since', cell: ({ occurred_at }) => <Moment at={occurred_at} /> },
];

export function Payments() {
  const pages = useSearch('payments', (query) =>
    get<Page<PaymentRow>>('/admin/payments', { ...query, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Payments" about="As the providers' events tell them, by tenant and id." />
      <Tabs label="Which money" tabs={MONEY_TABS} current="/payments" />
      <Filters filters={FILTERS} />
      <List
        caption="Payments"
        whole={{ list: 'payments' }}
        pages={pages}
        columns={PAYMENT_COLUMNS}
        keyOf={({ payment_key }) => payment_key}
        noMatch="No payment matches"
      >
        <Empty title="No payment yet">Events of a payment provider tell of them.</Empty>
      </List>
    </>
  );
}
