// What is done to one order reads no whole table, however many orders there are, and whatever was there when it was planned.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { scannedBy } from '../support/scans.ts';
import { useDatabase } from '../support/suite.ts';
import { ask, expire, newPaidPool, type Order, order, over, settle, settleAll } from './support.ts';

const ORDERS = 5_000;
const BATCH = 1_000;
/** After five calls Postgres may keep one plan for all that follow. */
const CALLS_UNTIL_PLANS_STAY = 7;
/** A table that is all but empty may be read in sequence. */
const ROWS_READ_MAX = 100;
const TABLES = [
  'public.claims',
  'public.inventory_slots',
  'public.orders',
  'public.order_payments',
  'public.checkouts',
  'pgmq.q_intake_queue',
];

describe('orders', () => {
  const { session } = useDatabase('db1', ['session'], { settings: { autovacuum: 'off' } });
  let users = 0;
  const newOrder = (pool: string, seats = 1) => order(session, pool, `user ${++users}`, seats);
  const paid = async (pool: string): Promise<Order> => {
    const made = await newOrder(pool, 2);
    assert.equal((await settle(session, made, `pi_${made.order_id}`)).decision, 'funds');
    return made;
  };
  const begin = ({ order_id, user_id }: Order) =>
    session.rows('select public.begin_checkout($1, $2, $3)', [order_id, user_id, 'https://example.com']);
  const claimsOf = 'intake.claims_of_orders(array[$1::uuid])';

  const hot: Record<string, (pool: string) => Promise<unknown>> = {
    'a claim of one slot': (pool) => ask(session, pool, `user ${++users}`),
    'a claim of several': (pool) => ask(session, pool, `user ${++users}`, 3),
    'a payment': paid,
    async 'payments together'(pool) {
      const made = [await newOrder(pool, 2), await newOrder(pool)];
      assert.equal((await settleAll(session, made)).length, 2);
      assert.equal((await settleAll(session, made)).length, 2, 'as they were decided');
    },
    async 'a late payment'(pool) {
      const made = await newOrder(pool, 2);
      await over(session, made);
      await expire(session);
      assert.equal((await settle(session, made, `pi_${made.order_id}`)).reason, 'late');
    },
    async 'a void'(pool) {
      const { order_id } = await paid(pool);
      assert.equal(await session.value(`select public.finish_void(${claimsOf}, 'x')`, [order_id]), 2);
    },
    async 'a checkout and its end'(pool) {
      const made = await newOrder(pool);
      await begin(made);
      await session.rows(`select public.checkout_created($1, 1, $2, 'https://pay')`, [
        made.order_id,
        `cs_${made.order_id}`,
      ]);
      await over(session, made);
      await session.rows('update public.checkouts set next_attempt_at = now() where order_id = $1', [
        made.order_id,
      ]);
      const closed = await session.rows(
        `select public.close_checkout(k.order_id, k.n, k.lease_token, 'expired', null) from public.take_closing(10, 60, false) k`,
      );
      assert.equal(closed.length, 1);
      assert.equal(await expire(session), 1);
    },
    async 'a release'(pool) {
      const { order_id, user_id } = await newOrder(pool, 2);
      await session.rows('select * from public.release_own_claim($1, $2)', [order_id, user_id]);
    },
    async 'a look'(pool) {
      const { order_id } = await paid(pool);
      await session.rows('select * from public.get_claim($1)', [order_id]);
      await session.rows('select public.order_details($1)', [order_id]);
    },
  };

  test('are found by index, also by plans that were made while there were none', async () => {
    const small = await newPaidPool(session, 200, { max_quantity: 3 });
    for (const run of Object.values(hot).toReversed())
      for (let call = 0; call < CALLS_UNTIL_PLANS_STAY; call++) await run(small);
    const large = await newPaidPool(session, ORDERS + 500, { max_quantity: 3 });
    for (let made = 0; made < ORDERS; made += BATCH)
      await session.batch(Array.from({ length: BATCH }, () => ({ pool: large, user: `user ${++users}` })));
    const undecided = `select o.order_id, o.user_id from public.orders o where o.pool_id = $1`;
    await session.rows(
      `select public.begin_checkout(o.order_id, o.user_id, 'https://example.com') from (${undecided}) o`,
      [large],
    );
    for (const [what, run] of Object.entries(hot))
      for (const [table, rows] of Object.entries(await scannedBy(session, () => run(large), TABLES)))
        assert(rows <= ROWS_READ_MAX, `${what}: ${rows} rows of ${table} read in sequence`);
  });
});
