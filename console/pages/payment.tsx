import { get } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { orderPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import type { PaymentView } from '../lib/shapes.ts';
import { Card, Chip, Facts, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { storySteps } from '../parts/story.ts';
import { type Column, Table } from '../parts/table.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { CREDIT_COLUMNS } from './credits.tsx';
import { amountOf } from './payments.tsx';

type Owed = PaymentView['refunds'][number];

const OWED_COLUMNS: Column<Owed>[] = [
  { head: 'Refund', place: 'title', cell: ({ id }) => <Id value={id} /> },
  { head: 'State', place: 'corner', cell: ({ state }) => <Chip state={state} /> },
  { head: 'Amount', isNumber: true, cell: ({ amount, currency }) => amountOf(amount, currency) },
  { head: 'Why', place: 'wide', cell: ({ reason }) => words(reason) },
  { head: 'Owed since', cell: ({ created_at }) => <Moment at={created_at} /> },
];

function PaymentFacts({ payment, provider_refunds, transactions }: PaymentView) {
  const money = (amount: number | null) => amountOf(amount, payment.currency);
  return (
    <Facts
      facts={[
        ['User', <User key="user" id={payment.user_id} />],
        [
          'Order',
          payment.order_id && <Id key="order" value={payment.order_id} to={orderPlace(payment.order_id)} />,
        ],
        ['Tenant', payment.provider],
        ['Amount', money(payment.amount)],
        ['Captured', money(payment.captured)],
        ['Refunded', money(payment.refunded)],
        ['Disputed', payment.disputed === null ? null : money(payment.disputed)],
        ['State since', <Moment key="since" at={payment.occurred_at} />],
        ...provider_refunds.map(
          ({ refund_id, amount, failed_at }, index) =>
            [
              `Refund ${index + 1}`,
              <span key={refund_id}>
                <Id value={refund_id} /> {money(amount)}
                {failed_at && ' failed'}
              </span>,
            ] as const,
        ),
        ...transactions.map(
          ({ transaction_id, amount }, index) =>
            [
              `Dispute movement ${index + 1}`,
              <span key={transaction_id}>
                <Id value={transaction_id} /> {money(amount)}
              </span>,
            ] as const,
        ),
      ]}
    />
  );
}

export function Payment({ parameter }: { parameter: string }) {
  const loaded = useLoad(`payment ${parameter}`, () =>
    get<PaymentView>(`/admin/payments/${encodeURIComponent(parameter)}`),
  );
  return (
    <>
      <PageHead title="Payment" state={loaded.value?.payment.state} about={<Id value={parameter} />}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
      </PageHead>
      <Await loaded={loaded}>
        {(view) => (
          <>
            <div class="columns">
              <Card title="What moved it, and what it moved">
                <Timeline
                  steps={storySteps(view.timeline, {
                    user_id: view.payment.user_id,
                    order_id: view.payment.order_id,
                    currency: view.payment.currency,
                  })}
                />
              </Card>
              <Card title="The payment">
                <PaymentFacts {...view} />
              </Card>
            </div>
            {view.refunds.length > 0 && (
              <section aria-labelledby="owed">
                <h2 id="owed">Refunds owed</h2>
                <Table
                  caption="Refunds owed"
                  rows={view.refunds}
                  columns={OWED_COLUMNS}
                  keyOf={({ id }) => id}
                />
              </section>
            )}
            {view.credits.length > 0 && (
              <section aria-labelledby="credits">
                <h2 id="credits">Credits</h2>
                <Table
                  caption="Credits"
                  rows={view.credits}
                  columns={CREDIT_COLUMNS.filter(({ head }) => head !== 'Payment')}
                  keyOf={({ id }) => String(id)}
                />
              </section>
            )}
          </>
        )}
      </Await>
    </>
  );
}
