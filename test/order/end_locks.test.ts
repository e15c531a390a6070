// What another session has locked is left for the next look, and the holds of all other pools end meanwhile.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { useIntake } from '../support/suite.ts';
import { expire, newPaidPool, type Order, order, over, soldTwice, statesOf } from './support.ts';

describe('the end of holds', () => {
  const { observer, first, second } = useIntake('observer', 'first', 'second');
  let plain = 0;

  beforeEach(async () => {
    await second.client.query(`set lock_timeout = '2s'`);
  });
  afterEach(() => first.client.query('rollback'));

  /** A pool without payment, with a claim whose hold is over. */
  const plainHold = async (rules: Record<string, unknown> = {}): Promise<string> => {
    const pool = `plain_${++plain}`;
    await putOnSale(observer.client, pool, 2, { hold_sec: 600, ...rules });
    await observer.claim(pool, 'ann');
    return pool;
  };
  const holdIsOver = (pools: string[]) =>
    observer.rows(
      `update public.claims set hold_until = now() - interval '1 second' where pool_id = any ($1)`,
      [pools],
    );
  const paidHold = async (): Promise<Order> => {
    const made = await order(observer, await newPaidPool(observer, 4, { max_quantity: 2 }), 'ann', 2);
    await over(observer, made);
    return made;
  };
  const standing = async (pool: string) =>
    (
      await observer.rows<{ at: string }>(
        `select concat_ws(' ', c.state, 'ending as ' || c.end_as, s.status) as at
         from public.claims c join public.inventory_slots s on s.id = c.slot_id where c.pool_id = $1`,
        [pool],
      )
    ).map(({ at }) => at);
  const finishEnds = (pools: string[]) =>
    second.value<number>(
      `select public.finish_ends(array_agg(claim_id), array_agg('voided'::text))
       from public.claims where pool_id = any ($1) and end_as is not null`,
      [pools],
    );

  test('leaves the order of a claim that another session has locked, all of it, and waits for nothing', async () => {
    const [locked, paid, free] = [await paidHold(), await paidHold(), await plainHold()];
    await holdIsOver([free]);
    await first.client.query('begin');
    await first.rows('select from public.claims where claim_id = $1 for update', [locked.order_id]);
    assert.equal(await expire(second), 2);
    assert.deepEqual(await statesOf(observer, locked), ['held', 'held']);
    assert.deepEqual(await statesOf(observer, paid), ['expired', 'expired']);
    assert.deepEqual(await standing(free), ['expired AVAILABLE']);
    await first.client.query('rollback');
    assert.equal(await expire(second), 1);
    assert.deepEqual(await statesOf(observer, locked), ['expired', 'expired']);
    assert.equal(await soldTwice(observer), 0);
  });

  test('leaves the pool whose lock another session has, and waits for nothing', async () => {
    const [locked, paid, lockedPlain, free] = [
      await paidHold(),
      await paidHold(),
      await plainHold(),
      await plainHold(),
    ];
    await holdIsOver([lockedPlain, free]);
    await first.client.query('begin');
    for (const pool of [locked.pool_id, lockedPlain])
      await first.rows('select pg_advisory_xact_lock(intake.pool_lock_key($1))', [pool]);
    assert.equal(await expire(second), 3);
    assert.deepEqual(await statesOf(observer, locked), ['held', 'held']);
    assert.deepEqual(await statesOf(observer, paid), ['expired', 'expired']);
    assert.deepEqual(await standing(lockedPlain), ['queued ending as expired RESERVED']);
    assert.deepEqual(await standing(free), ['expired AVAILABLE']);
    assert.equal(await finishEnds([lockedPlain]), 0, 'nor does what comes back to it wait');
    await first.client.query('rollback');
    assert.equal(await expire(second), 1);
    assert.equal(await finishEnds([lockedPlain]), 1);
    assert.deepEqual(await statesOf(observer, locked), ['expired', 'expired']);
    assert.deepEqual(await standing(lockedPlain), ['expired AVAILABLE']);
    assert.equal(await soldTwice(observer), 0);
  });

  test('ends nothing that a hook may have while another session has locked its slot', async () => {
    const pool = await plainHold({ commit_webhook_url: 'https://example.com/commit' });
    await observer.rows(`update pgmq.q_intake_queue set read_ct = 1 where message ->> 'pool_id' = $1`, [
      pool,
    ]);
    await holdIsOver([pool]);
    await first.client.query('begin');
    await first.rows(
      `select from public.inventory_slots where pool_id = $1 and status = 'RESERVED' for update`,
      [pool],
    );
    assert.equal(await expire(second), 1);
    assert.deepEqual(await standing(pool), ['queued RESERVED']);
    assert.equal(await expire(second), 0, 'it has no hold any more');
  });
});
