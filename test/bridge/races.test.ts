// Finishes that meet others: a rebuild, a claim of the same slot, a late finish of the same batch.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { closeAll, interleave, openSessions, type Session, waitsFor } from '../support/sessions.ts';
import { FaultWorld, TICKET } from './fault_support.ts';

let world: FaultWorld;
let sessions: [Session, Session, Session];

before(async () => {
  world = await FaultWorld.start();
  sessions = (await openSessions(world.databases.db1.url, 3)) as [Session, Session, Session];
});

after(async () => {
  await closeAll(sessions);
  await world.stop();
});

const outcomesOf = async (
  session: Session,
  msgIds: unknown,
  readCts: string,
  verdicts: string,
): Promise<string[]> => {
  const finished = await session.rows<{ outcome: string }>(
    `select outcome from public.bridge_finish($1::bigint[], $2, $3, array_fill('r'::text, array[cardinality($1::bigint[])]),
       array_fill(0, array[cardinality($1::bigint[])])) order by msg_id`,
    [msgIds, readCts, verdicts],
  );
  return finished.map(({ outcome }) => outcome);
};

/** Up to so many messages of every lane. */
const TAKE = `
  select t.msg_id, t.read_ct from (select array(select lane from public.bridge_lanes()) as lanes) a
  cross join lateral public.bridge_take(a.lanes, array_fill(100, array[cardinality(a.lanes)]), 600) t`;
const take = async (): Promise<string[]> => (await world.db1.query(TAKE)).rows.map((row) => row.msg_id);

test('a finish during a rebuild waits for it, and the slot it brings back is consumed', async () => {
  const [rebuilder, worker, observer] = sessions;
  await world.sell('rebuilt', ['ann']);
  const msgIds = await take();
  const { rows } = await world.db1.query(
    `select slot_id, claim_id from public.claims where pool_id = 'rebuilt'`,
  );
  await world.db1.query('truncate public.inventory_slots');
  const { second } = await interleave(
    observer,
    {
      session: rebuilder,
      run: () => rebuilder.value<boolean>(`select intake.rebuild_inventory('rebuilt')`),
      end: 'commit',
    },
    { session: worker, run: () => outcomesOf(worker, msgIds, '{1}', '{committed}') },
  );
  assert.deepEqual(second, ['committed']);
  const { slot_id: slotId, claim_id: claimId } = rows[0];
  await world.db2.query(`select public.finalize_transaction($1)`, [
    { resource_id: slotId, pool_id: 'rebuilt', user_id: 'ann', claim_id: claimId },
  ]);
  assert.deepEqual(await world.ends('rebuilt'), { ann: TICKET });
});

test('a late mixed finish locks nothing of the new holder, so that they cannot block each other', async () => {
  const [holder, late, owner] = sessions;
  await world.sell('mixed', ['ann', 'bob']);
  const msgIds = await take();
  await world.expireLeases();
  assert.deepEqual(await take(), msgIds);
  // `owner` holds a claim's lock, which stops the holder between its messages and its claims.
  await owner.client.query('begin');
  await owner.rows(`select from public.claims where pool_id = 'mixed' for update`);
  const holding = outcomesOf(holder, msgIds, '{2,2}', '{retry,committed}');
  const [observer] = await openSessions(world.databases.db1.url, 1);
  assert(observer);
  try {
    await waitsFor(observer, holder, owner);
    assert.deepEqual(await outcomesOf(late, msgIds, '{1,1}', '{retry,committed}'), [
      'lost_lease',
      'lost_lease',
    ]);
  } finally {
    await owner.client.query('rollback');
    await observer.close();
  }
  assert.deepEqual(await holding, ['retry', 'committed']);
  await world.db1.query('delete from pgmq.q_intake_queue');
});

/** A slot on sale, and a message for it that was put on the queue by hand and taken. */
async function byHand(pool: string): Promise<{ slotId: string; msgIds: string[] }> {
  await putOnSale(world.db1, pool, 1);
  const { rows } = await world.db1.query('select id from public.inventory_slots where pool_id = $1', [pool]);
  await world.db1.query('select public.intake_queue_send($1)', [
    { pool_id: pool, resource_id: rows[0].id, user_id: 'hand' },
  ]);
  return { slotId: rows[0].id, msgIds: await take() };
}

const statusOf = async (slotId: string): Promise<string> =>
  (await world.db1.query('select status from public.inventory_slots where id = $1', [slotId])).rows[0].status;

test('a slot sold by hand while a buyer has it locked is consumed by the last of the two, without a deadlock', async () => {
  const [buyer, worker] = sessions;
  const { slotId, msgIds } = await byHand('locked');
  await buyer.client.query('begin');
  await buyer.rows('select from public.inventory_slots where id = $1 for update', [slotId]);
  assert.deepEqual(await outcomesOf(worker, msgIds, '{1}', '{committed}'), ['committed']);
  assert.equal(await buyer.claim('locked', 'late'), null, 'sold out');
  await buyer.client.query('commit');
  assert.equal(await statusOf(slotId), 'CONSUMED');
});

for (const end of ['commit', 'rollback'] as const) {
  test(`a slot sold by hand while a claim for it is under way: after its ${end} the slot is whose claim is there`, async () => {
    const [buyer, worker, observer] = sessions;
    const pool = `under way, ${end}`;
    const { slotId, msgIds } = await byHand(pool);
    const { first, second } = await interleave(
      observer,
      { session: buyer, run: () => buyer.claim(pool, 'first'), end },
      { session: worker, run: () => outcomesOf(worker, msgIds, '{1}', '{committed}') },
    );
    assert.deepEqual([first, second], [slotId, ['committed']]);
    const { rows } = await world.db1.query('select user_id, state from public.claims where slot_id = $1', [
      slotId,
    ]);
    const isSold = end === 'rollback';
    assert.deepEqual(rows, [
      isSold ? { user_id: 'hand', state: 'committed' } : { user_id: 'first', state: 'queued' },
    ]);
    assert.equal(await statusOf(slotId), isSold ? 'CONSUMED' : 'RESERVED');
    await world.db1.query('delete from pgmq.q_intake_queue');
  });
}

test('a release that waits for a take of a message that was handed back untried comes too late', async () => {
  const [worker, buyer, observer] = sessions;
  await world.sell('metered', ['ann']);
  const msgIds = await take();
  assert.deepEqual(await outcomesOf(worker, msgIds, '{1}', '{untried}'), ['untried']);
  const { first, second } = await interleave(
    observer,
    {
      session: worker,
      run: () => worker.rows(`select read_ct from (${TAKE}) t`),
      end: 'commit',
    },
    {
      session: buyer,
      run: () =>
        buyer
          .rows(
            `select r.state, r.ending from public.claims c, public.release_own_claim(c.claim_id, 'ann') r
             where c.pool_id = 'metered'`,
          )
          .then(
            ([claim]) => claim,
            (error: { code?: string }) => error.code,
          ),
    },
  );
  assert.deepEqual([first, second], [[{ read_ct: 2 }], { state: 'queued', ending: true }]);
  await world.db1.query('delete from pgmq.q_intake_queue');
});

test('an expiry takes a message that a worker is about to take for taken, and does not wait', async () => {
  const [worker, cron] = sessions;
  await world.sell('due', ['ann'], { hold_sec: 60 });
  const msgIds = await take();
  assert.deepEqual(await outcomesOf(worker, msgIds, '{1}', '{untried}'), ['untried']);
  await world.db1.query(`update public.claims set hold_until = now() - interval '1 s' where pool_id = 'due'`);
  await worker.client.query('begin');
  await worker.rows(TAKE);
  assert.equal(await cron.value('select public.expire_holds()'), 1);
  await worker.client.query('commit');
  assert.deepEqual(
    await cron.rows(`select state::text, end_as::text from public.claims where pool_id = 'due'`),
    [{ state: 'queued', end_as: 'expired' }],
  );
});
