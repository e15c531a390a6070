// After a crash every pool has lost its slots. They come back pool by pool, each committed by itself, and what has to do with
// one pool waits for no other.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLog } from '../../src/log.ts';
import { startScheduler } from '../../src/scheduler/scheduler.ts';
import { putOnSale } from '../server/support.ts';
import { useIntake } from '../support/suite.ts';

const SLOTS = 5;

describe('pools that have lost their slots', () => {
  const { observer, holder, worker, url } = useIntake('observer', 'holder', 'worker');
  let rounds = 0;

  // As the server's and the scheduler's connections have it.
  before(() => worker.client.query(`set lock_timeout = '2s'`));

  const newPools = async (): Promise<[string, string, string]> => {
    const pools: [string, string, string] = [`lost_${++rounds}_a`, `lost_${rounds}_b`, `lost_${rounds}_c`];
    for (const [at, pool] of pools.entries()) await putOnSale(observer.client, pool, SLOTS + at);
    return pools;
  };
  const loseTheCache = () => observer.client.query('truncate public.inventory_slots');
  const slotsOf = (pool: string) =>
    observer.value<number>('select count(*)::int from public.inventory_slots where pool_id = $1', [pool]);
  const rebuildOne = (session = worker) => session.value<string | null>('select intake.rebuild_lost_pool()');
  const rebuildAll = async (): Promise<string[]> => {
    const rebuilt: string[] = [];
    for (let pool = await rebuildOne(); pool !== null; pool = await rebuildOne()) rebuilt.push(pool);
    return rebuilt;
  };
  /** A rebuild that takes its time: everything is done but the commit. */
  const beginRebuild = async (pool: string) => {
    await holder.client.query('begin');
    assert.equal(await holder.value('select intake.rebuild_inventory($1)', [pool]), true);
  };

  test('come back one by one, the smallest first, each committed by itself', async () => {
    const pools = await newPools();
    await loseTheCache();
    const first = await rebuildOne();
    assert.equal(first, pools[0]);
    // Another session sees it already, and the rest are still away.
    assert.deepEqual(await Promise.all(pools.map(slotsOf)), [SLOTS, 0, 0]);
    assert.deepEqual(
      (await rebuildAll()).filter((pool) => pools.includes(pool)),
      pools.slice(1),
    );
    assert.deepEqual(await Promise.all(pools.map(slotsOf)), [SLOTS, SLOTS + 1, SLOTS + 2]);
    assert.equal(await rebuildOne(), null, 'a second round finds none');
  });

  test('come back in a procedure that commits after each, and a cut in the middle keeps what is done', async () => {
    const [a, b, c] = await newPools();
    await loseTheCache();
    await observer.client.query(
      `create function public.stop_at_b() returns trigger language plpgsql as
       $$ begin if new.pool_id = '${b}' then raise exception 'cut'; end if; return new; end $$`,
    );
    await observer.client.query(
      'create trigger stop_at_b before insert on intake.pool_marks for each row execute function public.stop_at_b()',
    );
    try {
      await assert.rejects(worker.client.query('call intake.rebuild_lost_pools()'), /cut/);
    } finally {
      await observer.client.query('drop function public.stop_at_b() cascade');
    }
    assert.equal(await slotsOf(a), SLOTS);
    assert.deepEqual([await slotsOf(b), await slotsOf(c)], [0, 0]);
    await worker.client.query('call intake.rebuild_lost_pools()');
    assert.deepEqual([await slotsOf(b), await slotsOf(c)], [SLOTS + 1, SLOTS + 2]);
  });

  test('are passed over while another session rebuilds them', async () => {
    const pools = await newPools();
    await loseTheCache();
    await beginRebuild(pools[0]);
    assert.deepEqual(
      (await rebuildAll()).filter((pool) => pools.includes(pool)),
      pools.slice(1),
    );
    await holder.client.query('rollback');
    assert.equal(await rebuildOne(), pools[0], 'who gave up leaves it to the next');
  });

  test('that are asked for go first, whatever else is lost or being rebuilt', async () => {
    const [a, , c] = await newPools();
    await loseTheCache();
    await beginRebuild(a);
    assert.notEqual(await worker.claim(c, 'ann'), null);
  });

  test('keep no job from the other pools: holds end, metrics are taken, orphans are freed', async () => {
    const [a, b] = await newPools();
    for (const pool of [a, b]) await observer.claim(pool, 'ann');
    await observer.rows(
      `update public.claims set hold_until = now() - interval '1 minute' where pool_id = any ($1)`,
      [[a, b]],
    );
    await loseTheCache();
    await rebuildAll();
    await observer.rows('delete from intake.pool_marks where pool_id = $1', [a]);
    await beginRebuild(a);
    assert.equal(await worker.value('select public.expire_holds()'), 1, 'the hold of the pool that is there');
    await worker.rows('select public.snapshot_engine_metrics()');
    assert.deepEqual(
      await observer.rows('select pool_id from public.engine_metrics where pool_id = any ($1)', [[a, b]]),
      [{ pool_id: b }],
      'a pool without its slots has no number rather than a wrong one',
    );
    assert.equal(await worker.value(`select public.reap_orphaned_slots('-1 hour')`), 0);
    await holder.client.query('commit');
    assert.equal(
      await worker.value('select public.expire_holds()'),
      1,
      'the other one when its pool is back',
    );
  });

  test('come back by the scheduler where pg_cron is not', async () => {
    const pools = await newPools();
    await loseTheCache();
    const scheduler = startScheduler({ db1Url: url(), log: createLog('silent') });
    try {
      const deadline = Date.now() + 10_000;
      while ((await Promise.all(pools.map(slotsOf))).includes(0)) {
        assert.ok(Date.now() < deadline, 'the scheduler did not bring them back');
        await delay(20);
      }
    } finally {
      await scheduler.stop();
    }
  });
});
