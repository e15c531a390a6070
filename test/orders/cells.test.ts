// Several cells: a payment finds the cell of its order, a cell that is away delays its own orders only, and an order is unknown only
// when all cells have answered.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import test from 'node:test';
import { query, startFleet } from '../fleet/support.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { addEndpoint } from '../webhook/world.ts';
import { carry, decisionsOf, order, outboxOf, pay, RULES, refundAll } from './cells_support.ts';

/** Another pool to whose cell the ids of its claims lead. */
function twinOf(pool: string): string {
  const digits = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 3);
  for (let n = 0; ; n++) if (digits(`twin_${n}`) === digits(pool)) return `twin_${n}`;
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
