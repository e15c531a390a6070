// `sluice orders`: find orders of paid pools, and see one from the hold to the ticket.

import { ORDER_STATUSES, type OrderRow, type OrderView } from '#core/console/order_shapes.ts';
import { moneyOf } from '#core/money.ts';
import { AdminClient, type Page } from '../admin/client.ts';
import { showEach, timelineTable } from './claim_tables.ts';
import { action, type Group, type Values } from './grammar.ts';
import { OPTION, readConnection, showAction, VARIABLES } from './operator.ts';
import { formatTable, toTheSecond } from './table.ts';
import { readUuid } from './values.ts';

const connect = (): AdminClient => new AdminClient(readConnection(process.env));

const LIST_OPTIONS = {
  pool: { value: 'ID', about: 'of this pool' },
  user: { value: 'ID', about: 'of this user' },
  status: { value: 'STATUS', choices: ORDER_STATUSES, about: ORDER_STATUSES.join(', ') },
  limit: { range: [1, 1_000], default: 100, about: 'at most this many' },
  after: { value: 'ID', about: 'those after this order: "next" of the page before' },
  json: OPTION.json,
} as const;

async function list(values: Values<typeof LIST_OPTIONS>): Promise<number> {
  const query: Record<string, string> = { limit: String(values.limit) };
  if (values.pool !== undefined) query.pool_id = values.pool;
  if (values.user !== undefined) query.user_id = values.user;
  if (values.status !== undefined) query.status = values.status;
  if (values.after !== undefined) query.after = readUuid('--after', values.after);
  const page = await connect().get<Page<OrderRow>>('/admin/orders', query);
  if (values.json) {
    console.log(JSON.stringify(page));
    return 0;
  }
  const rows = page.items.map((order) => [
    order.order_id,
    order.pool_id,
    order.user_id,
    order.status,
    String(order.seats),
    moneyOf(order.amount, order.currency),
    toTheSecond(order.ordered_at),
  ]);
  const header = ['ORDER', 'POOL', 'USER', 'STATUS', 'SEATS', 'AMOUNT', 'ORDERED'];
  console.log(rows.length === 0 ? 'No such orders.' : formatTable(header, rows));
  if (page.next !== null) console.error(`There may be more: --after ${page.next}`);
  return 0;
}

const show = (ids: readonly string[], json: boolean): Promise<number> =>
  showEach<OrderView>(connect, ids, json, {
    pathOf: (id) => `/admin/orders/${encodeURIComponent(id)}`,
    describe: described,
    unknown: (id) => `No order has the claim or payment ${id}.`,
  });

function described(view: OrderView): string {
  const { order, claims, tickets, voided, timeline } = view;
  const facts: [string, string][] = [
    ['pool', order.pool_id],
    ['user', `${order.user_id} (${order.verified ? 'verified' : 'not verified'})`],
    ['status', order.status],
    [
      'amount',
      `${moneyOf(order.amount, order.currency)}, ${order.seats} × ${moneyOf(order.unit_price, order.currency)}`,
    ],
    ['held until', order.hold_until === null ? '-' : toTheSecond(order.hold_until)],
    ['bought by', order.payment_key ?? '-'],
  ];
  const ticketOf = new Map([
    ...tickets.map(({ claim_id, used_at }) => [claim_id, used_at === null ? 'valid' : 'used'] as const),
    ...voided.map(({ claim_id, cause }) => [claim_id, `voided: ${cause}`] as const),
  ]);
  const seats = claims.map(({ claim_id, resource_id, label, state }) => [
    claim_id,
    label ?? resource_id,
    state,
    view.is_ledger_known ? (ticketOf.get(claim_id) ?? '-') : '?',
  ]);
  const parts = [
    formatTable(['ORDER', order.order_id], facts),
    formatTable(['CLAIM', 'SEAT', 'STATE', 'TICKET'], seats),
    timelineTable(timeline),
  ];
  if (!view.is_ledger_known)
    parts.push('The ledger does not answer: payments, refunds and tickets are not known right now.');
  return parts.join('\n\n');
}

export const command: Group = {
  about: 'Find orders of paid pools, and see one from the hold to the ticket',
  environment: { ...VARIABLES.server, ...VARIABLES.operator },
  exits: ['when all is done', 'when some order was not there'],
  actions: {
    list: action({
      about: `List orders, newest first

The list asks DB1 alone, which does not know what was refunded: refund_due stays there. \`sluice orders show\` says refunded, and
\`sluice refunds list\` what is still owed.`,
      options: LIST_OPTIONS,
      examples: ['sluice orders list --pool opening_night --status paying'],
      run: list,
    }),
    show: showAction(
      'Show orders by a claim or a payment: checkouts, events, decisions, refunds and tickets as one timeline',
      '<id> …',
      'sluice orders show pi_3MtwBwLkdIwHu7ix',
      show,
    ),
  },
};
