// A void meets the workers that carry what it ends: they hold messages and then claims, and so does it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { interleave, type Session, waitsFor } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';
import { newPaidPool, type Order, order, settle, soldTwice, statesOf } from './support.ts';

describe('a void', () => {
  const { observer, gate, first, second } = useIntake('observer', 'gate', 'first', 'second');

  const paidOrder = async (): Promise<Order> => {
    const made = await order(observer, await newPaidPool(observer, 2, { max_quantity: 2 }), 'ann', 2);
    await settle(observer, made, `pi_${made.order_id}`);
    return made;
  };
  const taken = async ({ order_id }: Order): Promise<string[]> => {
    const rows = await observer.rows<{ msg_id: string }>(
      `update pgmq.q_intake_queue set read_ct = 1, vt = clock_timestamp() + interval '1 minute'
       where message ->> 'order_id' = $1::text returning msg_id`,
      [order_id],
    );
    return rows.map(({ msg_id }) => msg_id);
  };
  const finish = (session: Session, msgIds: string[], verdict: string) =>
    session.rows<{ outcome: string }>('select outcome from public.bridge_finish($1, $2, $3, $4, $5)', [
      msgIds,
      msgIds.map(() => 1),
      msgIds.map(() => verdict),
      msgIds.map(() => 'why'),
      msgIds.map(() => 0),
    ]);
  const voidAll = (session: Session, { order_id }: Order) =>
    session.value<number>(
      `select public.finish_void(array(select claim_id from public.claims where order_id = $1), 'refunded')`,
      [order_id],
    );
  const free = ({ pool_id }: Order) =>
    observer.value<number>(
      `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`,
      [pool_id],
    );

  test('that meets a finish waits for it, and takes the tickets', async () => {
    const made = await paidOrder();
    const msgIds = await taken(made);
    const { second: ended } = await interleave(
      observer,
      { session: first, run: () => finish(first, msgIds, 'committed'), end: 'commit' },
      { session: second, run: () => voidAll(second, made) },
    );
    assert.equal(ended, 2);
    assert.deepEqual([await statesOf(observer, made), await free(made)], [['voided', 'voided'], 2]);
  });

  test('that meets a finish half-way waits for its messages, and both end', async () => {
    const made = await paidOrder();
    const msgIds = await taken(made);
    await gate.client.query('begin');
    await gate.rows('select from pgmq.q_intake_queue where msg_id = $1 for update', [
      msgIds.toSorted().at(-1),
    ]);
    const finished = finish(first, msgIds, 'committed');
    await waitsFor(observer, first, gate);
    const ended = voidAll(second, made);
    await waitsFor(observer, second, first);
    await gate.client.query('commit');
    assert.deepEqual(
      [(await finished).map(({ outcome }) => outcome), await ended],
      [['committed', 'committed'], 2],
    );
  });

  test('that is first leaves a finish nothing', async () => {
    const made = await paidOrder();
    const msgIds = await taken(made);
    const { second: answers } = await interleave(
      observer,
      { session: first, run: () => voidAll(first, made), end: 'commit' },
      { session: second, run: () => finish(second, msgIds, 'committed') },
    );
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['lost_lease', 'lost_lease'],
    );
    assert.deepEqual([await statesOf(observer, made), await free(made)], [['voided', 'voided'], 2]);
  });

  test('that meets a dead letter on its way back says so, and ends it when it is asked again', async () => {
    const made = await paidOrder();
    await finish(observer, await taken(made), 'dead_letter');
    const letters = await observer.value<string[]>(
      `select array_agg(msg_id order by msg_id) from pgmq.q_intake_dlq where message ->> 'order_id' = $1::text`,
      [made.order_id],
    );
    const { second: ended } = await interleave(
      observer,
      {
        session: first,
        run: () => first.rows(`select * from public.replay_dead_letters($1, 'olga')`, [letters]),
        end: 'commit',
      },
      { session: second, run: () => voidAll(second, made) },
    );
    assert.equal(ended, 0, 'its messages are others by now');
    assert.deepEqual(await statesOf(observer, made), ['queued', 'queued']);
    assert.equal(await voidAll(second, made), 2);
    assert.equal(await free(made), 2);
  });

  test('waits for no slot that another session has', async () => {
    const made = await paidOrder();
    await finish(observer, await taken(made), 'committed');
    await first.client.query('begin');
    await first.rows('select from public.inventory_slots where pool_id = $1 order by id limit 1 for update', [
      made.pool_id,
    ]);
    assert.equal(await voidAll(second, made), 1);
    await first.client.query('commit');
    assert.equal(await voidAll(second, made), 2);
    assert.deepEqual([await free(made), await soldTwice(observer)], [2, 0]);
  });

  test('of two orders, named in two orders, at once: both end', async () => {
    const pool = await newPaidPool(observer, 2);
    const made = [await order(observer, pool, 'ann'), await order(observer, pool, 'bob')];
    for (const each of made) await settle(observer, each, `pi_${each.order_id}`);
    const ids = made.map(({ order_id }) => order_id);
    const { second: ended } = await interleave(
      observer,
      {
        session: first,
        run: () => first.value<number>(`select public.finish_void($1, 'a')`, [ids]),
        end: 'commit',
      },
      {
        session: second,
        run: () => second.value<number>(`select public.finish_void($1, 'b')`, [ids.toReversed()]),
      },
    );
    assert.equal(ended, 2);
    assert.deepEqual(
      await observer.rows('select distinct end_reason from public.claims where claim_id = any ($1)', [ids]),
      [{ end_reason: 'a' }],
    );
  });
});
