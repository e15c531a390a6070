// What happens to one order at once: its row decides who comes first, and the second finds what the first has done.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { interleave, type Session } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';
import {
  expire,
  messagesOf,
  newPaidPool,
  order,
  over,
  settle,
  settleAll,
  soldTwice,
  statesOf,
} from './support.ts';

describe('one order, two sessions', () => {
  const { observer, first, second } = useIntake('observer', 'first', 'second');

  /** As `run` in a transaction of `session` that is not ended; the caller looks on and then ends it. */
  const inside = async <Result>(session: Session, run: () => Promise<Result>): Promise<Result> => {
    await session.client.query('begin');
    return run();
  };

  test('a payment that is being settled keeps its slots from the expiry', async () => {
    const paid = await order(observer, await newPaidPool(observer, 1), 'ann');
    await over(observer, paid);
    await inside(first, () => settle(first, paid, `pi_${paid.order_id}`));
    assert.equal(await expire(second), 0, 'the expiry does not wait');
    await first.client.query('commit');
    assert.equal(await expire(second), 0);
    assert.deepEqual(await statesOf(observer, paid), ['queued']);
  });

  test('a payment that is rolled back leaves the order to the expiry', async () => {
    const unpaid = await order(observer, await newPaidPool(observer, 1), 'ann');
    await over(observer, unpaid);
    await inside(first, () => settle(first, unpaid, `pi_${unpaid.order_id}`));
    await first.client.query('rollback');
    assert.equal(await expire(second), 1);
    assert.deepEqual(await statesOf(observer, unpaid), ['expired']);
  });

  test('a payment that meets the expiry waits for it and buys the slots anew', async () => {
    const late = await order(observer, await newPaidPool(observer, 2, { max_quantity: 2 }), 'ann', 2);
    await over(observer, late);
    const { second: settled } = await interleave(
      observer,
      { session: first, run: () => expire(first), end: 'commit' },
      { session: second, run: () => settle(second, late, `pi_${late.order_id}`) },
    );
    assert.deepEqual([settled.decision, settled.reason, settled.claim_ids.length], ['funds', 'late', 2]);
    assert.deepEqual((await statesOf(observer, late)).sort(), ['expired', 'expired', 'queued', 'queued']);
    assert.equal(await soldTwice(observer), 0);
  });

  test('a payment that meets a release waits for it and is sent back', async () => {
    const given = await order(observer, await newPaidPool(observer, 1), 'ann');
    const { second: settled } = await interleave(
      observer,
      {
        session: first,
        run: () => first.rows(`select * from public.release_own_claim($1, 'ann')`, [given.order_id]),
        end: 'commit',
      },
      { session: second, run: () => settle(second, given, `pi_${given.order_id}`) },
    );
    assert.deepEqual([settled.decision, settled.reason], ['refund', 'released']);
  });

  test('one payment told twice at once is decided once', async () => {
    const told = await order(observer, await newPaidPool(observer, 2, { max_quantity: 2 }), 'ann', 2);
    const settled = await interleave(
      observer,
      { session: first, run: () => settle(first, told, `pi_${told.order_id}`), end: 'commit' },
      { session: second, run: () => settle(second, told, `pi_${told.order_id}`) },
    );
    assert.deepEqual(settled.second, settled.first);
    assert.equal(settled.first.decision, 'funds');
    assert.equal(await messagesOf(observer, told), 2);
  });

  test('payments that are decided together wait for no order, and no claim, that another session has', async () => {
    const pool = await newPaidPool(observer, 6, { max_quantity: 2 });
    const free = await order(observer, pool, 'ann', 2);
    const locked = await order(observer, pool, 'bob', 2);
    const inPart = await order(observer, pool, 'cid', 2);
    await inside(first, () =>
      first.rows('select from public.orders where order_id = $1 for update', [locked.order_id]),
    );
    await first.rows('select from public.claims where claim_id = $1 for update', [inPart.order_id]);
    assert.deepEqual(await settleAll(second, [locked, free, inPart]), [free.order_id]);
    assert.deepEqual(await statesOf(observer, inPart), ['held', 'held'], 'all of an order, or nothing');
    await first.client.query('rollback');
    assert.deepEqual(
      await settleAll(second, [locked, free, inPart]),
      [locked, free, inPart].map(({ order_id }) => order_id).sort(),
    );
    assert.equal(await messagesOf(observer, free), 2);
  });

  test('one set of payments in two sessions, the other way round: each is decided once', async () => {
    const pool = await newPaidPool(observer, 20);
    const orders = await Promise.all(
      Array.from({ length: 20 }, (_, at) => order(observer, pool, `user ${at}`)),
    );
    await Promise.all([settleAll(first, orders), settleAll(second, orders.toReversed())]);
    assert.equal((await settleAll(observer, orders)).length, orders.length);
    for (const one of orders) assert.equal(await messagesOf(observer, one), 1);
  });

  test('payments that are decided together meet the expiry: an order that ends is left out', async () => {
    const pool = await newPaidPool(observer, 2);
    const [ending, staying] = [await order(observer, pool, 'ann'), await order(observer, pool, 'bob')];
    await over(observer, ending);
    await inside(first, () => expire(first));
    assert.deepEqual(await settleAll(second, [ending, staying]), [staying.order_id]);
    await first.client.query('commit');
    assert.deepEqual(await settleAll(second, [ending]), []);
    assert.deepEqual(await statesOf(observer, ending), ['expired']);
  });

  test('two payments of one order at once: one buys, the other is sent back', async () => {
    const twice = await order(observer, await newPaidPool(observer, 1), 'ann');
    const settled = await interleave(
      observer,
      { session: first, run: () => settle(first, twice, `pi_1${twice.order_id}`), end: 'commit' },
      { session: second, run: () => settle(second, twice, `pi_2${twice.order_id}`) },
    );
    assert.deepEqual(
      [settled.first.decision, settled.second.decision, settled.second.reason],
      ['funds', 'refund', 'second_payment'],
    );
    assert.equal(await messagesOf(observer, twice), 1);
  });

  test('a checkout that is being begun keeps its order from the expiry until its grace is over', async () => {
    const begun = await order(observer, await newPaidPool(observer, 1), 'ann');
    await inside(first, () =>
      first.rows(`select * from public.begin_checkout($1, 'ann', 'https://example.com')`, [begun.order_id]),
    );
    // A door that took longer than the hold: the row is not changed, so no expiry that waits would look again.
    await first.rows(`update public.orders set hold_until = now() where order_id = $1`, [begun.order_id]);
    assert.equal(await expire(second), 0, 'the order is locked');
    await first.client.query('commit');
    assert.equal(await expire(second), 0, 'and then has a checkout');
    await observer.rows('update public.orders set grace_until = now() where order_id = $1', [begun.order_id]);
    assert.equal(await expire(second), 1);
  });

  test('a checkout that meets the expiry waits for it and is refused', async () => {
    const ended = await order(observer, await newPaidPool(observer, 1), 'ann');
    await first.client.query('begin');
    await first.rows(`update public.orders set hold_until = now() where order_id = $1`, [ended.order_id]);
    assert.equal(await expire(first), 1);
    const begun = second.rows(`select * from public.begin_checkout($1, 'ann', 'https://example.com')`, [
      ended.order_id,
    ]);
    const refused = assert.rejects(begun, { code: 'SL040' });
    await first.client.query('commit');
    await refused;
  });

  test('a session that was paid meets the expiry: no slot is sold twice', async () => {
    const pool = await newPaidPool(observer, 1);
    const paying = await order(observer, pool, 'ann');
    await observer.rows(`select * from public.begin_checkout($1, 'ann', 'https://example.com')`, [
      paying.order_id,
    ]);
    await over(observer, paying);
    await inside(first, () =>
      first.rows(`select public.close_checkout($1, 1, null, 'complete', $2)`, [
        paying.order_id,
        `pi_${paying.order_id}`,
      ]),
    );
    await observer.rows('select 1');
    assert.equal(await expire(second), 0);
    await first.client.query('commit');
    await observer.rows('update public.orders set grace_until = now() where order_id = $1', [
      paying.order_id,
    ]);
    assert.equal(await expire(second), 0, 'what is being paid has no end');
    assert.equal((await settle(second, paying, `pi_${paying.order_id}`)).decision, 'funds');
    assert.equal(await soldTwice(observer), 0);
  });
});
