// Ends take messages and dead letters before claims, as finishes and operators do: none of them is a deadlock (40P01).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import type { Session } from '../support/sessions.ts';
import { waitsFor } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

describe('the end of claims', () => {
  const { observer, gate, first, second } = useIntake('observer', 'gate', 'first', 'second');

  /** A claim of each user, taken by a worker. */
  const sell = async (pool: string, users: string[]): Promise<Record<string, string>> => {
    await putOnSale(observer.client, pool, users.length);
    for (const user of users) await observer.claim(pool, user);
    const taken = await observer.rows<{ msg_id: string; user: string }>(
      `update pgmq.q_intake_queue set read_ct = 1 where message ->> 'pool_id' = $1
       returning msg_id, message ->> 'user_id' as user`,
      [pool],
    );
    return Object.fromEntries(taken.map(({ msg_id, user }) => [user, msg_id]));
  };
  /** The ledger has the tombstones of all that is to end in the pool. */
  const finishEnds = (session: Session, pool: string) =>
    session.value<number>(
      `select public.finish_ends(array_agg(claim_id), array_agg('voided'::text)) from public.claims where pool_id = $1`,
      [pool],
    );
  const holdClaim = async (pool: string, user: string) => {
    await gate.client.query('begin');
    await gate.rows('select from public.claims where pool_id = $1 and user_id = $2 for update', [pool, user]);
  };
  const standing = (pool: string) =>
    observer.rows(
      `select c.user_id::text as user, c.state::text, s.status::text from public.claims c
       join public.inventory_slots s on s.id = c.slot_id where c.pool_id = $1 order by 1`,
      [pool],
    );

  test('waits for the worker that finishes a delivery, and takes what that one left', async () => {
    const { ann, bob } = await sell('finished', ['ann', 'bob', 'cyd']);
    await observer.rows(
      `select public.release_own_claim(claim_id, user_id) from public.claims where pool_id = 'finished'`,
    );
    await holdClaim('finished', 'ann');
    const finish = first.rows(
      `select * from public.bridge_finish($1, '{1,1}', '{committed,dead_letter}', '{null,x}', '{0,0}')`,
      [[ann, bob]],
    );
    await waitsFor(observer, first, gate);
    const ended = finishEnds(second, 'finished');
    await waitsFor(observer, second, first);
    await gate.client.query('commit');
    await finish;
    assert.equal(await ended, 1, 'one is a ticket, and one moved to the dead letters in this moment');
    assert.equal(await finishEnds(observer, 'finished'), 1, 'the next look finds it there');
    assert.deepEqual(await standing('finished'), [
      { user: 'ann', state: 'committed', status: 'CONSUMED' },
      { user: 'bob', state: 'released', status: 'AVAILABLE' },
      { user: 'cyd', state: 'released', status: 'AVAILABLE' },
    ]);
  });

  test('waits for the operator who asks for a replay', async () => {
    const { ann } = await sell('replayed', ['ann']);
    const letter = await observer.value<string>(
      'select public.intake_route_to_dlq(msg_id, message, 1) from pgmq.q_intake_queue where msg_id = $1',
      [ann],
    );
    await observer.rows(`select * from public.discard_dead_letters(array[$1::bigint], 'olga')`, [letter]);
    await holdClaim('replayed', 'ann');
    const replay = first.rows(`select outcome from public.replay_dead_letters(array[$1::bigint], 'olga')`, [
      letter,
    ]);
    await waitsFor(observer, first, gate);
    const ended = finishEnds(second, 'replayed');
    await waitsFor(observer, second, first);
    await gate.client.query('commit');
    assert.deepEqual(await replay, [{ outcome: 'claim_is_ending' }]);
    assert.equal(await ended, 1);
    assert.deepEqual(await standing('replayed'), [{ user: 'ann', state: 'discarded', status: 'AVAILABLE' }]);
  });
});
