import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PoolRoutes, type PoolStatus } from '#core/pool.ts';
import { askRoutes } from './support.ts';

const STATUS: PoolStatus = {
  pool_id: 'p',
  status: 'open',
  capacity: 10,
  available: 7,
  opens_at: null,
  closes_at: null,
  max_per_user: null,
  hold_sec: null,
  require_auth: false,
  allow_guests: false,
  max_per_address: null,
  challenge_difficulty: null,
  max_quantity: 1,
  confirm_by: 'auto',
  price: null,
  currency: null,
  details: null,
};
const { challenge_difficulty: _, ...SHOWN } = STATUS;

function setUp(answer: (poolId: string) => Promise<PoolStatus | undefined> = async () => STATUS) {
  const state = { calls: 0, now: 0 };
  const pools = new PoolRoutes({
    now: () => state.now,
    poolStatus: (poolId) => {
      state.calls++;
      return answer(poolId);
    },
  });
  const ask = askRoutes(pools.routes());
  return { state, get: (pool = 'p') => ask({ path: `/v1/pools/${pool}` }) };
}

describe('the status of a pool', () => {
  it('is shown as the database has it', async () => {
    const { status, json, headers } = await setUp().get();
    assert.deepEqual(
      [status, json, headers['cache-control']],
      [200, { ...SHOWN, challenge: false }, 'public, max-age=1'],
    );
  });

  it('is asked for once a second', async () => {
    const { state, get } = setUp();
    await get();
    state.now = 999;
    await get();
    assert.equal(state.calls, 1);
    state.now = 1_000;
    await get();
    assert.equal(state.calls, 2);
  });

  it('is asked for again after a failure', async () => {
    let fails = true;
    const { state, get } = setUp(async () => {
      if (fails) throw Object.assign(new Error('down'), { code: '08006' });
      return STATUS;
    });
    assert.equal((await get()).status, 503);
    fails = false;
    assert.equal((await get()).status, 200);
    assert.equal(state.calls, 2);
  });

  it('is 404 for a pool that is not there, which is remembered too', async () => {
    const { state, get } = setUp(async () => undefined);
    assert.equal((await get('nope')).json.error.code, 'unknown_pool');
    await get('nope');
    assert.equal(state.calls, 1);
  });
});
