// Orders in several cells, moved by the SQL functions that doors and Stripe's events call, and one courier for all of them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Courier } from '#core/orders/courier.ts';
import { NO_METRICS } from '#core/ports.ts';
import { createDatabase } from '../../src/db/database.ts';
import type { CellAddress } from '../../src/fleet/addresses.ts';
import { createLog } from '../../src/log.ts';
import { openWorkerFleet, orderCells } from '../../src/orders/cells.ts';
import { query } from '../fleet/support.ts';
import { PRICE } from './world.ts';

export const LOG = createLog('silent');
export const RULES = {
  confirm_by: 'payment',
  price: PRICE,
  currency: 'eur',
  payment_tenant: 'stripe',
  hold_sec: 600,
};

/** The order of one seat, of a user that is verified. */
export async function order(url: string, pool: string): Promise<string> {
  const [row] = await query<{ claim_id: string }>(
    url,
    `select claim_id from public.claim_batch(array[$1], array['ann'], array[$2], array[true])`,
    [pool, randomUUID()],
  );
  return row?.claim_id ?? '';
}

/** Stripe says that it was paid; the payment intent's id. */
export async function pay(db2: string, orderId: string, livemode = true): Promise<string> {
  const id = randomUUID().replaceAll('-', '');
  const session = {
    id: `cs_${id}`,
    object: 'checkout.session',
    payment_intent: `pi_${id}`,
    payment_status: 'paid',
    status: 'complete',
    amount_total: PRICE,
    currency: 'eur',
    livemode,
    metadata: { claim_id: orderId, user_id: 'ann', verified: 'true', checkout: `${orderId}:1` },
  };
  const [row] = await query(db2, `select public.record_pulled('stripe', $1) as outcome`, [session]);
  assert.equal(row?.outcome, 'success');
  return `pi_${id}`;
}

export async function refundAll(db2: string, payment: string): Promise<void> {
  const refund = { id: `re_${payment.slice(3)}`, object: 'refund', payment_intent: payment, amount: PRICE };
  const object = { ...refund, currency: 'eur', status: 'succeeded', livemode: true };
  await query(db2, `select public.record_pulled('stripe', $1)`, [object]);
}

export const decisionsOf = async (url: string): Promise<Record<string, string>> => {
  const rows = await query<{ payment: string; decision: string }>(
    url,
    `select split_part(payment_key, '/', 2) as payment, decision from public.order_payments`,
  );
  return Object.fromEntries(rows.map(({ payment, decision }) => [payment, decision]));
};
export const outboxOf = async (db2: string, payment: string, kind = 'settle') => {
  const sql = `select state, attempts, result ->> 'decision' as decision from public.claim_outbox where id = $1`;
  const [row] = await query<{ state: string; attempts: number; decision: string | null }>(db2, sql, [
    `${kind}:stripe/${payment}`,
  ]);
  return row;
};

/** One courier, until nothing is due. `unknownSec` is how long an order that no cell knows is waited for. */
export async function carry(cells: CellAddress[], db2Url: string, unknownSec?: number): Promise<void> {
  await query(db2Url, `update public.claim_outbox set next_attempt_at = now() where state = 'due'`);
  const fleet = openWorkerFleet(cells, 'orders test', LOG);
  const db2 = createDatabase({ url: db2Url, max: 4, applicationName: 'orders test', log: LOG });
  try {
    await fleet.start();
    const courier = new Courier(
      {
        db2: (name, args) => db2.call(`public.${name}`, args),
        cells: orderCells(fleet),
        metrics: NO_METRICS,
        log: LOG,
        now: Date.now,
      },
      unknownSec === undefined ? {} : { unknownSec },
    );
    await courier.drain(new AbortController().signal);
  } finally {
    await fleet.stop();
    await Promise.all([db2.end(), ...fleet.cells.map((cell) => cell.end())]);
  }
}
