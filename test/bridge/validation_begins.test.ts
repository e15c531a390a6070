// A pool begins to validate while workers take its messages. Whichever commits first, a refusal under the new rules never
// frees a claim that a worker may have carried under the old ones.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { interleave } from '../support/sessions.ts';
import { useIntake } from '../support/suite.ts';

const URL = 'https://example.com/validate';

describe('a pool that begins to validate', () => {
  const { observer, operator, worker } = useIntake('observer', 'operator', 'worker');
  let pools = 0;

  /** A pool with one claim on its way. */
  const newPool = async () => {
    const pool = `validating_${++pools}`;
    await putOnSale(observer.client, pool, 1);
    await observer.claim(pool, 'ann');
    return pool;
  };
  const begin = (pool: string) =>
    operator.rows('update public.engine_config set validation_webhook_url = $2 where pool_id = $1', [
      pool,
      URL,
    ]);
  /** The pools whose messages a worker is given. */
  const take = async (): Promise<string[]> => {
    const taken = await worker.rows<{ pool: string }>(
      `select t.message ->> 'pool_id' as pool from (select array(select lane from public.bridge_lanes()) as lanes) a
       cross join lateral public.bridge_take(a.lanes, array_fill(100, array[cardinality(a.lanes)]), 30) t`,
    );
    return taken.map(({ pool }) => pool);
  };
  const knowsUrl = async (pool: string) =>
    (await worker.value('select validation_webhook_url from public.bridge_config($1)', [[pool]])) !== null;
  const stateOf = (pool: string) =>
    observer.value<string>('select state::text from public.claims where pool_id = $1', [pool]);
  const refuse = (pool: string) =>
    worker.rows(
      `select f.* from pgmq.q_intake_queue q cross join lateral
         public.bridge_finish(array[q.msg_id], array[q.read_ct], '{refused}', '{no}', '{0}') f
       where q.message ->> 'pool_id' = $1`,
      [pool],
    );

  for (const end of ['commit', 'rollback'] as const) {
    test(`gives no worker a message before the ${end}, while other pools go on`, async () => {
      const [pool, other] = [await newPool(), await newPool()];
      await operator.client.query('begin');
      await begin(pool);
      const before = await take();
      await operator.client.query(end);
      assert.equal(before.includes(pool), false, 'the rules that hold for it cannot be read yet');
      assert.equal(before.includes(other), true, 'others are not kept waiting');
      assert.equal((await take()).includes(pool), true);
      assert.equal(await knowsUrl(pool), end === 'commit');
      assert.equal(
        await stateOf(pool),
        'queued',
        'no worker can have carried it: the hook is still to be asked',
      );
    });
  }

  test('does so where it gets its first rules', async () => {
    const pool = `validating_${++pools}`;
    await observer.client.query('insert into public.inventory_slots (pool_id) values ($1)', [pool]);
    await observer.claim(pool, 'ann');
    await operator.client.query('begin');
    await operator.rows(
      'insert into public.engine_config (pool_id, validation_webhook_url) values ($1, $2)',
      [pool, URL],
    );
    const before = await take();
    await operator.client.query('commit');
    assert.equal(before.includes(pool), false);
    // The pool has a lane of its own by now: one take moves the message there, and the next gives it.
    assert.equal([...(await take()), ...(await take())].includes(pool), true);
  });

  test('waits for a take that has not ended, and counts what it took as validated', async () => {
    const pool = await newPool();
    const { first } = await interleave(
      observer,
      { session: worker, run: take, end: 'commit' },
      { session: operator, run: () => begin(pool) },
    );
    assert.equal(first.includes(pool), true);
    assert.equal(await stateOf(pool), 'validated');
    await refuse(pool);
    assert.equal(await stateOf(pool), 'validated', 'a late refusal frees nothing');
  });

  test('without the lock a slot that was carried is freed: the tests above can fail', async () => {
    const pool = await newPool();
    const key = await observer.value<string>(
      `select pg_get_functiondef('intake.validation_lock_key(text)'::regprocedure)`,
    );
    await observer.client.query(
      `create or replace function intake.validation_lock_key(p_pool_id text) returns bigint language sql
       set search_path = '' as 'select pg_catalog.pg_backend_pid()::bigint'`,
    );
    try {
      await operator.client.query('begin');
      await begin(pool);
      assert.equal((await take()).includes(pool), true);
      assert.equal(await knowsUrl(pool), false, 'the worker carries it unasked');
      await operator.client.query('commit');
      // It dies after the ledger's commit, its lease runs out, and the next worker asks the hook.
      await refuse(pool);
      assert.equal(await stateOf(pool), 'refused', 'and the slot is on sale');
    } finally {
      await observer.client.query(key);
    }
  });
});
