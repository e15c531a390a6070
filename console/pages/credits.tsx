import { CREDIT_KINDS } from '../../db1/supabase/functions/_shared/console/payments.ts';
import { get } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { paymentPlace, searchPlace } from '../lib/links.ts';
import { type Page, useSearch } from '../lib/lists.ts';
import type { CreditRow } from '../lib/shapes.ts';
import { Filters, Tabs } from '../parts/fields.tsx';
import { List } from '../parts/list.tsx';
import { Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Empty } from '../parts/states.tsx';
import type { Column } from '../parts/table.tsx';
import { amountOf, MONEY_TABS } from './payments.tsx';

const LIMIT = 50;

const FILTERS = [
  { name: 'user_id', label: 'User' },
  { name: 'provider', label: 'Tenant' },
  { name: 'kind', label: 'Kind', options: CREDIT_KINDS },
];

const keyOf = ({ provider, object_id }: CreditRow): string => `${provider}/${object_id}`;

export const CREDIT_COLUMNS: Column<CreditRow>[] = [
  { head: 'When', place: 'corner', cell: ({ created_at }) => <Moment at={created_at} /> },
  { head: 'User', cell: ({ user_id }) => <User id={user_id} /> },
  { head: 'Kind', place: 'title', cell: ({ kind }) => <strong>{words(kind)}</strong> },
  { head: 'Amount', isNumber: true, cell: ({ amount, currency }) => amountOf(amount, currency) },
  {
    head: 'Payment',
    place: 'wide',
    cell: (row) => <Id value={keyOf(row)} to={paymentPlace(keyOf(row))} />,
  },
  {
    head: 'Told by',
    place: 'wide',
    cell: ({ event_id }) => <Id value={event_id} to={searchPlace(event_id)} />,
  },
];

export function Credits() {
  const pages = useSearch('credits', (query) =>
    get<Page<CreditRow>>('/admin/credits', { ...query, limit: LIMIT }),
  );
  return (
    <>
      <PageHead
        title="Credits"
        about="Every change of a user's balance, newest first. Rows are added and never changed."
      />
      <Tabs label="Which money" tabs={MONEY_TABS} current="/credits" />
      <Filters filters={FILTERS} />
      <List
        caption="Credits"
        whole={{ list: 'credits' }}
        pages={pages}
        columns={CREDIT_COLUMNS}
        keyOf={({ id }) => String(id)}
        noMatch="No credit matches"
      >
        <Empty title="No credit yet">Payments that capture money write them.</Empty>
      </List>
    </>
  );
}
