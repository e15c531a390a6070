// What the three books say about the orders of one pool, read at the end: the intake, the ledger, and the stand-in for Stripe.

import type { IntakeOrder, LedgerOrder, OrderRow } from '#core/console/order_shapes.ts';
import type { AdminClient } from '../../admin/client.ts';
import type { Database } from '../../db/database.ts';
import type { StandInClient } from '../../stripe_stand_in/client.ts';

export interface OrderFacts {
  readonly intake: IntakeOrder;
  readonly ledger: LedgerOrder;
}

/** A payment in the stand-in's books. Amounts are in minor units. */
export interface BookedPayment {
  readonly id: string;
  readonly order_id: string;
  readonly received: number;
  readonly refunded: number;
}

export interface Books {
  readonly price: number;
  readonly seats: number;
  /** As the intake counts the slots of the pool. */
  readonly levels: { readonly available: number; readonly reserved: number; readonly consumed: number };
  readonly orders: readonly OrderFacts[];
  readonly payments: readonly BookedPayment[];
  /** Sessions of the pool that could still be paid. */
  readonly openSessions: number;
}

export interface BookKeepers {
  readonly pool: string;
  readonly price: number;
  readonly seats: number;
  readonly admin: AdminClient;
  readonly db1: Database;
  readonly db2: Database;
  readonly standIn: StandInClient;
}

const PAGE = '1000';

export async function readBooks({
  pool,
  price,
  seats,
  admin,
  db1,
  db2,
  standIn,
}: BookKeepers): Promise<Books> {
  const rows = await admin.all<OrderRow>('/admin/orders', { pool_id: pool, limit: PAGE });
  const orders: OrderFacts[] = [];
  for (const { order_id } of rows) {
    const args = { p_order_id: order_id };
    const [one] = await db1.call<{ order_details: IntakeOrder }>('public.order_details', args);
    const [other] = await db2.call<{ ledger_order_details: LedgerOrder }>(
      'public.ledger_order_details',
      args,
    );
    if (one && other) orders.push({ intake: one.order_details, ledger: other.ledger_order_details });
  }
  const levels = await admin.get<Books['levels']>(`/admin/pools/${pool}`);
  return { price, seats, levels, orders, ...(await bookedAt(standIn, pool)) };
}

interface Session {
  readonly session: {
    readonly status: string | null;
    readonly metadata: Readonly<Record<string, string>> | null;
  };
}
interface Intent {
  readonly id: string;
  readonly amount_received: number;
  readonly metadata: Readonly<Record<string, string>>;
}
interface Refund {
  readonly payment_intent: string | null;
  readonly amount: number;
  readonly status: string | null;
}

async function bookedAt(
  standIn: StandInClient,
  pool: string,
): Promise<Pick<Books, 'payments' | 'openSessions'>> {
  const [sessions, intents, refunds] = await Promise.all([
    standIn.books<Session>('session'),
    standIn.books<Intent>('payment_intent'),
    standIn.books<Refund>('refund'),
  ]);
  const ofPool = intents.filter(
    ({ metadata, amount_received }) => metadata.pool_id === pool && amount_received > 0,
  );
  return {
    openSessions: sessions.filter(
      ({ session }) => session.status === 'open' && session.metadata?.pool_id === pool,
    ).length,
    payments: ofPool.map(({ id, amount_received, metadata }) => ({
      id,
      order_id: metadata.claim_id ?? '',
      received: amount_received,
      refunded: refunds
        .filter(({ payment_intent, status }) => payment_intent === id && status === 'succeeded')
        .reduce((sum, { amount }) => sum + amount, 0),
    })),
  };
}
