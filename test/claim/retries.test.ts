import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { ASKING, closeAll, interleave, openSessions } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

const RETRIES = 100;

describe('a retried claim', () => {
  const { observer, first, second, url } = useIntake('observer', 'first', 'second');
  let pools = 0;

  const newPool = async (slots: number) => {
    const pool = `retries_${++pools}`;
    await putOnSale(observer.client, pool, slots);
    return pool;
  };
  const claimsOf = (pool: string) =>
    observer.rows<{ slot_id: string }>('select slot_id from public.claims where pool_id = $1', [pool]);
  const messagesOf = (pool: string) =>
    observer.value<number>(`select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = $1`, [
      pool,
    ]);
  const freeSlotsOf = (pool: string) =>
    observer.value<number>(
      `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`,
      [pool],
    );

  for (const [kinds, askers] of [
    ['single claims', [ASKING.single]],
    ['batches', [ASKING.batch]],
    ['single claims and batches mixed', [ASKING.single, ASKING.batch]],
  ] as const) {
    test(`${RETRIES} at once make one claim: ${kinds}`, async () => {
      const pool = await newPool(RETRIES + 50);
      const sessions = await openSessions(url(), RETRIES);
      try {
        const answers = await Promise.all(
          sessions.map((session, at) => {
            const ask = askers[at % askers.length] ?? ASKING.single;
            return ask(session, pool, 'buyer', 'one-request');
          }),
        );
        const claims = await claimsOf(pool);
        assert.equal(claims.length, 1);
        assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['claimed']));
        assert.deepEqual(new Set(answers.map(({ slot }) => slot)), new Set([claims[0]?.slot_id]));
        assert.equal(await messagesOf(pool), 1);
        assert.equal(await freeSlotsOf(pool), RETRIES + 49);
      } finally {
        await closeAll(sessions);
      }
    });
  }

  for (const firstKind of ['single', 'batch'] as const) {
    for (const secondKind of ['single', 'batch'] as const) {
      const race = async (pool: string, end: 'commit' | 'rollback') =>
        interleave(
          observer,
          { session: first, run: () => ASKING[firstKind](first, pool, 'buyer', 'r'), end },
          { session: second, run: () => ASKING[secondKind](second, pool, 'buyer', 'r') },
        );

      test(`waits for the first and gets its slot: ${firstKind}, then ${secondKind}`, async () => {
        const pool = await newPool(10);
        const answers = await race(pool, 'commit');
        assert.equal(answers.first.outcome, 'claimed');
        assert.deepEqual(answers.second, answers.first);
        assert.equal((await claimsOf(pool)).length, 1);
        assert.equal(await freeSlotsOf(pool), 9);
      });

      test(`claims by itself when the first is rolled back: ${firstKind}, then ${secondKind}`, async () => {
        const pool = await newPool(10);
        const answers = await race(pool, 'rollback');
        assert.equal(answers.second.outcome, 'claimed');
        assert.deepEqual(await claimsOf(pool), [{ slot_id: answers.second.slot }]);
        assert.equal(await messagesOf(pool), 1);
        assert.equal(await freeSlotsOf(pool), 9);
      });
    }

    test(`of the last slot is never told "sold out": ${firstKind}, then single`, async () => {
      const pool = await newPool(1);
      const answers = await interleave(
        observer,
        { session: first, run: () => ASKING[firstKind](first, pool, 'buyer', 'r'), end: 'commit' },
        { session: second, run: () => ASKING.single(second, pool, 'buyer', 'r') },
      );
      assert.equal(answers.first.outcome, 'claimed');
      assert.deepEqual(answers.second, answers.first);
    });
  }

  test('of the last slot, in a batch, is busy while the first is open and the same claim afterwards', async () => {
    const pool = await newPool(1);
    await first.client.query('begin');
    const claimed = await ASKING.single(first, pool, 'buyer', 'r');
    assert.equal((await ASKING.batch(second, pool, 'buyer', 'r')).outcome, 'busy');
    await first.client.query('commit');
    assert.deepEqual(await ASKING.batch(second, pool, 'buyer', 'r'), claimed);
  });

  test('with another user id is another request, and waits for nothing while the first is still open', async () => {
    const pool = await newPool(10);
    await first.client.query('begin');
    const own = await first.claim(pool, 'buyer', 'r');
    assert.notEqual(await second.claim(pool, 'another buyer', 'r'), own);
    await first.client.query('commit');
    assert.equal((await claimsOf(pool)).length, 2);
  });

  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `r${from + at}`);
  const pairsOfBatches: Record<string, [string[], string[]]> = {
    'name the same requests in opposite order': [range(0, 40), range(0, 40).toReversed()],
    'name each request twice, in opposite order': [
      [...range(0, 20), ...range(0, 20)],
      [...range(0, 20), ...range(0, 20)].toReversed(),
    ],
    'name twice what the other names once': [
      [...range(0, 20), ...range(20, 40), ...range(20, 40)],
      [...range(20, 40), ...range(0, 20), ...range(0, 20)],
    ],
  };

  for (const [what, [forth, back]] of Object.entries(pairsOfBatches)) {
    test(`does not deadlock two batches that ${what}`, async () => {
      const ROUNDS = 20;
      const requests = new Set(forth).size;
      for (let round = 0; round < ROUNDS; round++) {
        const pool = await newPool(200);
        const batchOf = (ids: string[]) => ids.map((request) => ({ pool, user: 'buyer', request }));
        const asked = [first.batch(batchOf(forth)), second.batch(batchOf(back))];
        await Promise.allSettled(asked);
        const answers = (await Promise.all(asked)).flat();
        assert.equal(new Set(answers.map((answer) => answer.resource_id)).size, requests);
        assert.equal((await claimsOf(pool)).length, requests);
      }
    });
  }
});
