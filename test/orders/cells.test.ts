// Several cells: a payment finds the cell of its order, a cell that is away delays its own orders only, and an order is unknown only
// when all cells have answered.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import test from 'node:test';
import { Courier } from '#core/orders/courier.ts';
import { NO_METRICS } from '#core/ports.ts';
import { createDatabase } from '../../src/db/database.ts';
import type { CellAddress } from '../../src/fleet/addresses.ts';
import { createLog } from '../../src/log.ts';
import { openWorkerFleet, orderCells } from '../../src/orders/cells.ts';
import { query, startFleet } from '../fleet/support.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { addEndpoint } from '../webhook/world.ts';
import { PRICE } from './world.ts';

const LOG = createLog('silent');
const RULES = {
  confirm_by: 'payment',
  price: PRICE,
  currency: 'eur',
  payment_tenant: 'stripe',
  hold_sec: 600,
};

/** The order of one seat, of a user that is verified. */
async function order(url: string, pool: string): Promise<string> {
  const [row] = await query<{ claim_id: string }>(
    url,
    `select claim_id from public.claim_batch(array[$1], array['ann'], array[$2], array[true])`,
    [pool, randomUUID()],
  );
  return row?.claim_id ?? '';
}

/** Stripe says that it was paid; the payment intent's id. */
async function pay(db2: string, orderId: string, livemode = true): Promise<string> {
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

async function refundAll(db2: string, payment: string): Promise<void> {
  const refund = { id: `re_${payment.slice(3)}`, object: 'refund', payment_intent: payment, amount: PRICE };
  const object = { ...refund, currency: 'eur', status: 'succeeded', livemode: true };
  await query(db2, `select public.record_pulled('stripe', $1)`, [object]);
}

const decisionsOf = async (url: string): Promise<Record<string, string>> => {
  const rows = await query<{ payment: string; decision: string }>(
    url,
    `select split_part(payment_key, '/', 2) as payment, decision from public.order_payments`,
  );
  return Object.fromEntries(rows.map(({ payment, decision }) => [payment, decision]));
};
const outboxOf = async (db2: string, payment: string, kind = 'settle') => {
  const sql = `select state, attempts, result ->> 'decision' as decision from public.claim_outbox where id = $1`;
  const [row] = await query<{ state: string; attempts: number; decision: string | null }>(db2, sql, [
    `${kind}:stripe/${payment}`,
  ]);
  return row;
};

/** Another pool to whose cell the ids of its claims lead. */
function twinOf(pool: string): string {
  const digits = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 3);
  for (let n = 0; ; n++) if (digits(`twin_${n}`) === digits(pool)) return `twin_${n}`;
}

/** One courier, until nothing is due. `unknownSec` is how long an order that no cell knows is waited for. */
async function carry(cells: CellAddress[], db2Url: string, unknownSec?: number): Promise<void> {
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

test('a payment finds the cell of its order, and is unknown only when all cells have answered', async (t) => {
  const fleet = await startFleet(t);
  const { a, b, db2 } = fleet;
  for (const [cell, pool] of [
    [a, 'in_a'],
    [b, 'in_b'],
  ] as const) {
    const client = await openClient(cell.url);
    await putOnSale(client, pool, 4, RULES);
    await client.end();
  }
  const ledger = await openClient(db2.url);
  await addEndpoint(ledger, 'stripe', 'stripe', 'queued', { livemode: 'both' });
  await ledger.end();

  const [inA, inB] = [await order(a.url, 'in_a'), await order(b.url, 'in_b')];
  const [paidA, paidB] = [await pay(db2.url, inA), await pay(db2.url, inB)];
  await carry(fleet.cells, db2.url);
  assert.deepEqual(await decisionsOf(a.url), { [paidA]: 'funds' });
  assert.deepEqual(await decisionsOf(b.url), { [paidB]: 'funds' });
  assert.equal((await outboxOf(db2.url, paidB))?.decision, 'funds');

  // A refund that overtakes its payment is noted where the order is, and nowhere else.
  const overtaken = await pay(db2.url, await order(b.url, 'in_b'));
  await query(db2.url, `update public.claim_outbox set next_attempt_at = 'infinity' where id = $1`, [
    `settle:stripe/${overtaken}`,
  ]);
  await refundAll(db2.url, overtaken);
  await query(db2.url, `delete from public.claim_outbox where id = $1`, [`settle:stripe/${overtaken}`]);
  await carry(fleet.cells, db2.url);
  assert.equal((await outboxOf(db2.url, overtaken, 'void'))?.state, 'done');
  assert.equal((await decisionsOf(b.url))[overtaken], 'void');
  assert.equal((await decisionsOf(a.url))[overtaken], undefined);

  // Both cells are asked at once, because their pools have the same digits, and one has nothing to do with such payments.
  const twin = twinOf('in_a');
  const client = await openClient(b.url);
  await putOnSale(client, twin, 1, { ...RULES, payment_livemode: false });
  await client.end();
  const ofTwin = await pay(db2.url, await order(b.url, twin), false);
  await carry(fleet.cells, db2.url);
  assert.equal((await outboxOf(db2.url, ofTwin))?.decision, 'funds');

  // Cell b is away.
  const [nextA, nextB] = [await order(a.url, 'in_a'), await order(b.url, 'in_b')];
  const [paidNextA, paidNextB] = [await pay(db2.url, nextA), await pay(db2.url, nextB)];
  const nowhere = await pay(db2.url, randomUUID());
  await b.stop('immediate');
  await carry(fleet.cells, db2.url, 0);
  assert.equal((await outboxOf(db2.url, paidNextA))?.decision, 'funds');
  for (const payment of [paidNextB, nowhere])
    assert.deepEqual(await outboxOf(db2.url, payment), { state: 'due', attempts: 0, decision: null });

  const back = await b.restart();
  const cells = fleet.cells.map((cell) => (cell.name === 'b' ? { ...cell, url: back.url } : cell));
  await carry(cells, db2.url);
  assert.equal((await outboxOf(db2.url, paidNextB))?.decision, 'funds');
  // All have answered, and a claim may still be on its way.
  assert.deepEqual(await outboxOf(db2.url, nowhere), { state: 'due', attempts: 0, decision: null });
  await carry(cells, db2.url, 0);
  assert.equal((await outboxOf(db2.url, nowhere))?.decision, 'refund');
  const both = [await decisionsOf(a.url), await decisionsOf(back.url)];
  assert.equal(both.filter((decisions) => decisions[nowhere] === 'refund').length, 1);
  const states = `select state from public.refunds_due where payment_key = $1`;
  assert.deepEqual(await query(db2.url, states, [`stripe/${nowhere}`]), [{ state: 'review' }]);
});
