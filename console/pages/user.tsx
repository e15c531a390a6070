// All that is known about one user: a few of each kind, and the way to the rest.

import { get, pathWith } from '../lib/api.ts';
import type { Page } from '../lib/lists.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type {
  AuditRow,
  ClaimRecord,
  CreditRow,
  OrderRow,
  PaymentRow,
  TicketRow,
  UserSummary,
} from '../lib/shapes.ts';
import { Away } from '../parts/found.tsx';
import { Card, Facts, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { auditColumns } from './audit.tsx';
import { CLAIM_COLUMNS } from './claims.tsx';
import { CREDIT_COLUMNS } from './credits.tsx';
import { ORDER_COLUMNS } from './orders.tsx';
import { amountOf, PAYMENT_COLUMNS } from './payments.tsx';
import { TICKET_COLUMNS } from './tickets.tsx';
import { UserActs } from './user_acts.tsx';

const SHOWN = 5;

interface SectionProps<Row> {
  user: string;
  /** What the list is called by, here and in the API. */
  list: string;
  title: string;
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
}

/** Each asks for itself: where one database is away, the others' sections are shown. */
function Section<Row>({ user, list, title, columns, keyOf }: SectionProps<Row>) {
  const loaded = useLoad(`${list} of ${user}`, () =>
    get<Page<Row>>(`/admin/${list}`, { user_id: user, limit: SHOWN }),
  );
  return (
    <section aria-labelledby={`of-${list}`}>
      <h2 id={`of-${list}`}>{title}</h2>
      <Await loaded={loaded}>
        {({ items, next }) =>
          items.length === 0 ? (
            <p class="muted">None.</p>
          ) : (
            <>
              <Table
                caption={title}
                rows={items}
                columns={columns.filter(({ head }) => head !== 'User')}
                keyOf={keyOf}
              />
              <p class="more">
                <Link to={pathWith(`/${list}`, { user_id: user })}>
                  {next === null
                    ? `Show them as a list of ${title.toLowerCase()}`
                    : `All ${title.toLowerCase()}`}
                </Link>
              </p>
            </>
          )
        }
      </Await>
    </section>
  );
}

type Done = UserSummary['audit'][number];
const rowKey = ({ id, db }: Done): string => `${db} ${id}`;

function Summary({ summary }: { summary: UserSummary }) {
  const { balance, audit, away } = summary;
  return (
    <>
      <Away names={away} />
      <Card title="Balance">
        {balance === null && <p class="muted">Not known right now.</p>}
        {balance?.length === 0 && <p class="muted">No money has moved.</p>}
        <Facts
          facts={(balance ?? []).map(({ provider, currency, amount }) => [
            provider,
            amountOf(amount, currency),
          ])}
        />
      </Card>
      {audit.length > 0 && (
        <section aria-labelledby="of-audit">
          <h2 id="of-audit">What operators did</h2>
          <p class="about">The log names users by pseudonyms.</p>
          <Table
            caption="What operators did"
            rows={audit}
            columns={auditColumns(1) as Column<AuditRow>[] as Column<Done>[]}
            keyOf={rowKey}
          />
        </section>
      )}
    </>
  );
}

export function User({ parameter: user }: { parameter: string }) {
  const loaded = useLoad(`user ${user}`, () =>
    get<UserSummary>(`/admin/users/${encodeURIComponent(user)}/summary`),
  );
  return (
    <>
      <PageHead title="User" about={<span class="given">{user}</span>}>
        <UserActs user={user} onDone={loaded.reload} />
      </PageHead>
      <Section<ClaimRecord>
        user={user}
        list="claims"
        title="Claims"
        columns={CLAIM_COLUMNS}
        keyOf={({ claim_id }) => claim_id}
      />
      <Section<OrderRow>
        user={user}
        list="orders"
        title="Orders"
        columns={ORDER_COLUMNS}
        keyOf={({ order_id }) => order_id}
      />
      <Section<TicketRow>
        user={user}
        list="tickets"
        title="Tickets"
        columns={TICKET_COLUMNS}
        keyOf={({ claim_id }) => claim_id}
      />
      <Section<PaymentRow>
        user={user}
        list="payments"
        title="Payments"
        columns={PAYMENT_COLUMNS}
        keyOf={({ payment_key }) => payment_key}
      />
      <Section<CreditRow>
        user={user}
        list="credits"
        title="Credits"
        columns={CREDIT_COLUMNS}
        keyOf={({ id }) => String(id)}
      />
      <Await loaded={loaded}>{(summary) => <Summary summary={summary} />}</Await>
    </>
  );
}
