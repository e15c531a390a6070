// Orders as operators look for them, and one with all that both databases know about it.

import type { CallFunction } from '../call_function.ts';
import type { ClaimRecord } from '../claim.ts';
import { HttpError } from '../errors.ts';
import { UUID } from '../operator.ts';
import type { Log } from '../ports.ts';
import { type HttpResponse, jsonResponse, type Route } from '../router.ts';
import type { Schema } from '../schema.ts';
import type { AuditRow } from './audit.ts';
import type { TimelineEvent } from './claims.ts';
import { GIVEN_ID, LIMIT, PAGE, searchPage } from './list.ts';
import {
  type IntakeOrder,
  isSettled,
  type LedgerOrder,
  ORDER_STATUSES,
  type OrderRow,
  type OrderView,
} from './order_shapes.ts';
import { orderedAt, orderTimeline } from './order_timeline.ts';

export const ORDER_QUERY = {
  type: 'object',
  properties: {
    pool_id: GIVEN_ID,
    user_id: GIVEN_ID,
    status: { type: 'string', pattern: `^(${ORDER_STATUSES.join('|')})$` },
    after: UUID,
    page: PAGE,
    limit: LIMIT,
  },
  additionalProperties: false,
} as const satisfies Schema;

export interface OrderAdminPorts {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  readonly log: Log;
}

export function orderAdminRoutes(ports: OrderAdminPorts): Route[] {
  const find = (filters: Record<string, unknown>) => ports.db1<OrderRow>('order_list', filters);
  return [
    {
      method: 'GET',
      path: '/admin/orders',
      handle: (request) => searchPage(request, ORDER_QUERY, find, ({ order_id }) => order_id),
    },
    { method: 'GET', path: '/admin/orders/:order', handle: (_, id) => show(ports, id) },
  ];
}

const IS_UUID = new RegExp(UUID.pattern);

async function show(ports: OrderAdminPorts, given: string): Promise<HttpResponse> {
  const orderId = IS_UUID.test(given) ? await orderOfClaim(ports, given) : await orderOfPayment(ports, given);
  const [row] = await ports.db1<{ order_details: IntakeOrder | null }>('order_details', {
    p_order_id: orderId,
  });
  const intake = row?.order_details;
  if (!intake) throw new HttpError('not_found', NO_ORDER);
  const claimIds = intake.claims.map(({ claim_id }) => claim_id);
  const [done, ledger] = await Promise.all([
    ports.db1<AuditRow>('order_audit', { p_order_id: orderId }),
    ledgerOrder(ports, orderId, claimIds),
  ]);
  return jsonResponse(200, viewOf(intake, ledger, done));
}

const NO_ORDER = 'This claim has no order: its pool is not paid for.';

async function orderOfClaim({ db1 }: OrderAdminPorts, claimId: string): Promise<string> {
  const [claim] = await db1<ClaimRecord>('get_claim', { p_claim_id: claimId });
  if (claim === undefined) throw new HttpError('unknown_claim');
  const orderId = claim.order?.order_id;
  if (orderId === undefined) throw new HttpError('not_found', NO_ORDER);
  return orderId;
}

/** `payment` as Stripe names it, or with its tenant in front. */
async function orderOfPayment({ db2 }: OrderAdminPorts, payment: string): Promise<string> {
  const [row] = await db2<{ order_of_payment: string | null }>('order_of_payment', { p_payment: payment });
  if (row?.order_of_payment) return row.order_of_payment;
  throw new HttpError('not_found', 'No order has a payment with this id.');
}

/** What happened to the order and its money, for the page of one of its claims. */
const OF_THE_MONEY = /^(checkout|decided_|event$|payment$|other_seats|settle_waits|void_waits|refund_)/;

/** Nothing where the order is not known any more, or the cell that has it is away. */
export async function orderSteps(ports: OrderAdminPorts, orderId: string): Promise<TimelineEvent[]> {
  const [row] = await ports.db1<{ order_details: IntakeOrder | null }>('order_details', {
    p_order_id: orderId,
  });
  const intake = row?.order_details;
  if (!intake) return [];
  const claimIds = intake.claims.map(({ claim_id }) => claim_id);
  const ledger = await ledgerOrder(ports, orderId, claimIds);
  const steps = orderTimeline(intake, ledger, ledger?.audit ?? []);
  const acts = new Set((ledger?.audit ?? []).map(({ action }) => action));
  return steps.filter(({ what }) => OF_THE_MONEY.test(what) || acts.has(what));
}

/** What DB2 knows, with what operators did there. */
export interface AuditedLedgerOrder extends LedgerOrder {
  readonly audit: readonly AuditRow[];
}

/** Undefined while DB2 cannot be asked: an order can be looked at during an outage. */
async function ledgerOrder(
  { db2, log }: OrderAdminPorts,
  orderId: string,
  claimIds: readonly string[],
): Promise<AuditedLedgerOrder | undefined> {
  try {
    const [[row], audit] = await Promise.all([
      db2<{ ledger_order_details: LedgerOrder }>('ledger_order_details', { p_order_id: orderId }),
      db2<AuditRow>('order_audit', { p_order_id: orderId, p_claim_ids: claimIds }),
    ]);
    return row && { ...row.ledger_order_details, audit };
  } catch (error) {
    log.warn('the ledger cannot be asked for an order', { cause: error });
    return undefined;
  }
}

export function viewOf(
  intake: IntakeOrder,
  ledger: AuditedLedgerOrder | undefined,
  audit: readonly AuditRow[],
): OrderView {
  const { payments = [], refunds = [], tickets = [], voided = [] } = ledger ?? {};
  return {
    ...intake,
    order: { ...intake.order, ordered_at: orderedAt(intake), status: statusOf(intake, ledger) },
    payments,
    refunds,
    tickets,
    voided,
    is_ledger_known: ledger !== undefined,
    timeline: orderTimeline(intake, ledger, [...audit, ...(ledger?.audit ?? [])]),
  };
}

/** DB1 decides that money goes back; that Stripe has sent it is known to DB2. */
function statusOf({ order }: IntakeOrder, ledger: LedgerOrder | undefined): string {
  return order.status === 'refund_due' && isSettled(ledger?.refunds ?? []) ? 'refunded' : order.status;
}
