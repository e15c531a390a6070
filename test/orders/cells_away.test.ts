// Paid orders while a cell is away, and while a pool is on its way from one cell to another.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createPayments } from '#core/orders/stripe.ts';
import { NO_METRICS } from '#core/ports.ts';
import { movePool } from '../../src/fleet/move.ts';
import { carryOrdersOnce } from '../../src/orders/crew.ts';
import { openStripe } from '../../src/orders/stripe.ts';
import { caller, query, startFleet, type TestFleet } from '../fleet/support.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { addEndpoint } from '../webhook/world.ts';
import { carry, decisionsOf, LOG, order, outboxOf, pay, RULES } from './cells_support.ts';
import { STAND_IN_KEY, type StandInProcess, startStandInProcess } from './stand_in_process.ts';
import { secretOf } from './world.ts';

async function startShop(t: TestContext): Promise<TestFleet> {
  const fleet = await startFleet(t);
  for (const [cell, pool] of [
    [fleet.a, 'in_a'],
    [fleet.b, 'in_b'],
  ] as const) {
    const client = await openClient(cell.url);
    await putOnSale(client, pool, 2, RULES);
    await client.end();
  }
  const ledger = await openClient(fleet.db2.url);
  await addEndpoint(ledger, 'stripe', 'stripe', 'queued', { livemode: 'both' });
  await ledger.end();
  return fleet;
}

/** An order whose hold is over while its session is open; the session's id. */
async function overWithSession(url: string, pool: string, standIn: StandInProcess): Promise<string> {
  const orderId = await order(url, pool);
  const payments = createPayments(await openStripe(STAND_IN_KEY, { STRIPE_API_URL: standIn.url }));
  const [begun] = await query<{ n: number; params: Record<string, unknown>; idempotency_key: string }>(
    url,
    `select n, params, idempotency_key from public.begin_checkout($1, 'ann', 'http://127.0.0.1')`,
    [orderId],
  );
  const session = await payments.createSession(begun?.params ?? {}, begun?.idempotency_key ?? '');
  await query(url, 'select public.checkout_created($1, $2, $3, $4)', [
    orderId,
    begun?.n,
    session.id,
    session.url,
  ]);
  await query(url, 'update public.orders set hold_until = now() where order_id = $1', [orderId]);
  await query(url, 'update public.checkouts set next_attempt_at = now() where order_id = $1', [orderId]);
  return session.id;
}

test('one run of the workers ends sessions and settles payments of the cells that answer', async (t) => {
  const fleet = await startShop(t);
  const { a, b, db2 } = fleet;
  const standIn = await startStandInProcess({});
  t.after(() => standIn.stop());
  const statusOf = async (session: string) =>
    (await standIn.stripe.checkout.sessions.retrieve(session)).status;
  const sessionA = await overWithSession(a.url, 'in_a', standIn);
  const sessionB = await overWithSession(b.url, 'in_b', standIn);
  const [paidA, paidB] = [
    await pay(db2.url, await order(a.url, 'in_a')),
    await pay(db2.url, await order(b.url, 'in_b')),
  ];
  const run = (cells = fleet.cells) =>
    carryOrdersOnce(
      {
        db1Url: '',
        cells,
        db2Url: db2.url,
        secretOf,
        urls: { STRIPE_API_URL: standIn.url },
        metrics: NO_METRICS,
        log: LOG,
      },
      new AbortController().signal,
    );

  // The first of the cells is away: what comes after it must not wait for it.
  await a.stop('immediate');
  const away = await run();
  assert.equal(away.isPaused, true);
  assert.deepEqual([await statusOf(sessionA), await statusOf(sessionB)], ['open', 'expired']);
  assert.deepEqual(await decisionsOf(b.url), { [paidB]: 'funds' });
  assert.deepEqual(await outboxOf(db2.url, paidA), { state: 'due', attempts: 0, decision: null });

  const back = await a.restart();
  const cells = fleet.cells.map((cell) => (cell.name === 'a' ? { ...cell, url: back.url } : cell));
  await query(db2.url, `update public.claim_outbox set next_attempt_at = now() where state = 'due'`);
  await run(cells);
  assert.equal(await statusOf(sessionA), 'expired');
  assert.deepEqual(await decisionsOf(back.url), { [paidA]: 'funds' });
});

test('a payment of a pool that moves waits, and is settled in the cell that the pool has come to', async (t) => {
  const { a, b, db2, cells } = await startShop(t);
  const orderId = await order(a.url, 'in_a');
  await query(a.url, 'update public.orders set hold_until = now() where order_id = $1', [orderId]);
  await query(a.url, 'select public.expire_holds()');
  const late = await pay(db2.url, orderId);
  await query(a.url, `select public.pool_change('in_a', '{"is_active": false}', 0, 'test')`);
  const move = {
    poolId: 'in_a',
    source: caller(t, a.url),
    target: caller(t, b.url),
    to: 'b',
    actor: 'test',
    reason: null,
  };
  const onStep = (step: string) => {
    if (step === 'unpack') throw new Error('killed');
  };
  await assert.rejects(movePool({ ...move, onStep }), /killed/);
  // No cell has the order now. That is not the same as an order that does not exist, however long it takes.
  await carry(cells, db2.url, 0);
  assert.deepEqual(await outboxOf(db2.url, late), { state: 'due', attempts: 0, decision: null });

  await movePool(move);
  await query(b.url, `select public.pool_change('in_a', '{"is_active": true}', 0, 'test')`);
  await carry(cells, db2.url);
  assert.equal((await outboxOf(db2.url, late))?.decision, 'funds');
  assert.deepEqual([await decisionsOf(a.url), await decisionsOf(b.url)], [{}, { [late]: 'funds' }]);
});

test('no money goes back for an order of a lost cell that was taken out of the list', async (t) => {
  const { a, b, db2, cells } = await startShop(t);
  const paid = await pay(db2.url, await order(b.url, 'in_b'));
  const [left] = cells;
  assert(left);
  // The cells tell each other which pools they have.
  await carry(cells, db2.url);
  assert.equal((await outboxOf(db2.url, paid))?.decision, 'funds');
  const late = await pay(db2.url, await order(b.url, 'in_b'));
  const nowhere = await pay(db2.url, '00000000-0000-7000-8000-000000000000');
  await b.stop('immediate');
  await carry([left], db2.url, 0);
  assert.deepEqual(await outboxOf(db2.url, late), { state: 'due', attempts: 0, decision: null });
  assert.equal((await outboxOf(db2.url, nowhere))?.decision, 'refund');
  assert.equal((await decisionsOf(a.url))[late], undefined);
});
