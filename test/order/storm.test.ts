// Groups, payments and ends at once, from many sessions: all slots of a request or none, and no slot twice.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeAll, openSessions, type Session } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';
import { ask, expire, newPaidPool, type Order, settle, soldTwice } from './support.ts';

const SESSIONS = 12;
const ROUNDS = 12;
const SLOTS = 40;

describe('many sessions', () => {
  const { observer, gate, other, url } = useIntake('observer', 'gate', 'other');
  let sessions: Session[] = [];

  before(async () => {
    sessions = await openSessions(url(), SESSIONS);
  });
  after(() => closeAll(sessions));

  const free = (pool: string) =>
    observer.value<number>(
      `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`,
      [pool],
    );

  test('that want the last slots get whole groups, and the rest is told to ask again', async () => {
    const pool = await newPaidPool(observer, 3, { max_quantity: 2 });
    await gate.client.query('begin');
    assert.equal(await ask(gate, pool, 'ann', 2), 'claimed');
    // Told so in a transaction that goes on, as that of a batch does.
    await other.client.query('begin');
    assert.equal(await ask(other, pool, 'bob', 2), 'busy', 'they may come back');
    assert.equal(
      await ask(observer, pool, 'cid', 1),
      'claimed',
      'no slot stays in the hands of who was told so',
    );
    await other.client.query('commit');
    await gate.client.query('commit');
    assert.equal(await ask(observer, pool, 'bob', 2), 'not_enough');
    assert.equal(await soldTwice(observer), 0);
  });

  test('claim, pay and let expire, and each order has all of its seats or none', async () => {
    const pool = await newPaidPool(observer, SLOTS, { max_quantity: 4 });
    await Promise.all(
      sessions.map(async (session, at) => {
        for (let round = 0; round < ROUNDS; round++) {
          const user = `u${at}_${round}`;
          if ((await ask(session, pool, user, 1 + ((at + round) % 4))) !== 'claimed') {
            await expire(session);
            continue;
          }
          const [made] = await session.rows<Order>(
            'select * from public.orders where pool_id = $1 and user_id = $2',
            [pool, user],
          );
          assert(made !== undefined);
          if (round % 3 === 0)
            await session.rows('update public.orders set hold_until = now() where order_id = $1', [
              made.order_id,
            ]);
          if (round % 3 === 1) continue;
          await Promise.all([expire(session), settle(session, made, `pi_${made.order_id}`)]);
        }
      }),
    );
    const parts = await observer.rows(
      `select o.order_id from public.orders o join public.claims c on c.order_id = o.order_id
       where o.pool_id = $1 group by o.order_id, o.seats, o.payment_key
       having count(*) filter (where c.freed_at is null) not in (0, o.seats)
         or (count(*) filter (where c.paid) = o.seats) <> (o.payment_key is not null)`,
      [pool],
    );
    assert.deepEqual(parts, []);
    assert.equal(await soldTwice(observer), 0);
    const live = await observer.value<number>(
      'select count(*)::int from public.claims where pool_id = $1 and freed_at is null',
      [pool],
    );
    assert.equal(live + (await free(pool)), SLOTS, 'no slot is lost');
    const messages = await observer.value<number>(
      `select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = $1`,
      [pool],
    );
    assert.equal(
      messages,
      await observer.value<number>('select count(*)::int from public.claims where pool_id = $1 and paid', [
        pool,
      ]),
      'each paid claim has its message, and no other',
    );
  });
});
