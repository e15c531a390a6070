import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import { get } from '../lib/api.ts';
import { paymentPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import type { OrderView } from '../lib/shapes.ts';
import { Card, Facts, holderFacts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { storySteps } from '../parts/story.ts';
import { Timeline } from '../parts/timeline.tsx';
import { Seats } from './order_seats.tsx';

/** Several seats end together. */
const NAMES: Readonly<Record<string, string>> = {
  event: 'event from Stripe',
  voided: 'seats on sale again',
  expired: 'hold over: seats on sale again',
  released: 'given back: seats on sale again',
};

function OrderFacts({ order, decisions }: OrderView) {
  const money = (amount: number) => moneyOf(amount, order.currency);
  return (
    <Facts
      facts={[
        ...holderFacts(order),
        ['Price', `${order.seats} × ${money(order.unit_price)} = ${money(order.amount)}`],
        ['Ordered', <Moment key="ordered" at={order.ordered_at} />],
        ['Held until', order.hold_until && <Moment key="hold" at={order.hold_until} />],
        [
          'Bought by',
          order.payment_key && (
            <Id key="payment" value={order.payment_key} to={paymentPlace(order.payment_key)} />
          ),
        ],
        ['Payments', decisions.length > 1 ? decisions.length : null],
      ]}
    />
  );
}

export function Order({ parameter }: { parameter: string }) {
  const loaded = useLoad(`order ${parameter}`, () =>
    get<OrderView>(`/admin/orders/${encodeURIComponent(parameter)}`),
  );
  return (
    <>
      <PageHead title="Order" state={loaded.value?.order.status} about={<Id value={parameter} />}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
      </PageHead>
      <Await loaded={loaded}>
        {(view) => (
          <>
            <div class="columns">
              <Card title="From the hold to the ticket">
                <Timeline
                  steps={storySteps(
                    view.timeline,
                    {
                      currency: view.order.currency,
                      pool_id: view.order.pool_id,
                      user_id: view.order.user_id,
                      order_id: view.order.order_id,
                    },
                    NAMES,
                  )}
                />
              </Card>
              <Card title="The order">
                <OrderFacts {...view} />
              </Card>
            </div>
            <Seats view={view} onDone={loaded.reload} />
          </>
        )}
      </Await>
    </>
  );
}
