import { moneyOf } from '../../db1/supabase/functions/_shared/money.ts';
import { get } from '../lib/api.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { OrderRow, OrderView, TimelineEvent } from '../lib/shapes.ts';
import { Card, Facts, Id, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { type Step, Timeline } from '../parts/timeline.tsx';
import { Seats } from './order_seats.tsx';

const TONES: Readonly<Record<string, Step['tone']>> = {
  decided_funds: 'good',
  ticket: 'good',
  refund_done: 'good',
  decided_refund: 'bad',
  decided_void: 'bad',
  ticket_voided: 'bad',
  refund_failed: 'bad',
  held: 'wait',
  refund_due: 'wait',
  refund_review: 'wait',
  settle_waits: 'wait',
  void_waits: 'wait',
  settle_dead_letter: 'bad',
  void_dead_letter: 'bad',
  ledger_unreachable: 'wait',
};

/** What happened, in words for a reader who follows an order. */
const NAMES: Readonly<Record<string, string>> = {
  held: 'seats held',
  checkout: 'checkout at Stripe',
  decided_funds: 'payment accepted for these seats',
  decided_refund: 'payment goes back',
  decided_void: 'payment taken back before it bought anything',
  other_seats: 'late payment: other seats',
  event: 'event from Stripe',
  payment: 'payment, as it stands',
  settle_waits: 'payment waits for its decision',
  void_waits: 'void is on its way',
  settle_dead_letter: 'payment cannot be decided',
  void_dead_letter: 'void cannot be carried out',
  refund_due: 'refund owed',
  refund_review: 'refund waits for an operator',
  refund_sent: 'refund sent',
  refund_done: 'refunded',
  refund_failed: 'refund failed',
  refund_skipped: 'refund closed by an operator',
  ticket: 'tickets',
  ticket_voided: 'tickets void',
  voided: 'seats on sale again',
  expired: 'hold over: seats on sale again',
  released: 'given back: seats on sale again',
  used: 'used at the entrance',
  ticket_void: 'void asked for by an operator',
  refund_send: 'refund sent by an operator',
  refund_skip: 'refund closed by an operator',
  payment_resettle: 'decided again, by an operator',
};

const NOTES: Readonly<Record<string, string>> = {
  refund_review: 'Send or skip it on the page of refunds.',
  ledger_unreachable: 'The ledger does not answer, so payments, refunds and tickets are unknown right now.',
};

const AMOUNTS = /^(amount|captured|refunded|disputed)$/;

function stepOf({ at, what, detail }: TimelineEvent, { currency, pool_id, user_id }: OrderRow): Step {
  const known: Readonly<Record<string, unknown>> = { currency, pool_id, user_id };
  const news = Object.entries(detail).filter(([name, value]) => known[name] !== value);
  const readable = news.map(([name, value]) => [
    name,
    AMOUNTS.test(name) && typeof value === 'number'
      ? moneyOf(value, String(detail.currency ?? currency))
      : value,
  ]);
  const tone = TONES[what];
  return {
    at,
    what: NAMES[what] ?? what,
    detail: Object.fromEntries(readable),
    note: NOTES[what],
    ...(tone && { tone }),
  };
}

function OrderFacts({ order, decisions }: OrderView) {
  const money = (amount: number) => moneyOf(amount, order.currency);
  return (
    <Facts
      facts={[
        [
          'User',
          <Link key="user" to={`/orders?user_id=${encodeURIComponent(order.user_id)}`}>
            {order.user_id}
          </Link>,
        ],
        ['Vouched for by a token', order.verified ? 'yes' : 'no'],
        [
          'Pool',
          <Link key="pool" to={`/pools/${encodeURIComponent(order.pool_id)}`}>
            {order.pool_id}
          </Link>,
        ],
        ['Price', `${order.seats} × ${money(order.unit_price)} = ${money(order.amount)}`],
        ['Ordered', <Moment key="ordered" at={order.ordered_at} />],
        ['Held until', order.hold_until && <Moment key="hold" at={order.hold_until} />],
        ['Bought by', order.payment_key && <Id key="payment" value={order.payment_key} />],
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
                <Timeline steps={view.timeline.map((event) => stepOf(event, view.order))} />
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
