// A finish that another session keeps up: it is tried again under its lease, and takes no more than its share of the connections.

import assert from 'node:assert/strict';
import { describe, it, mock, type TestContext } from 'node:test';
import type { Finish } from '#core/bridge/ports.ts';
import { databaseError, neverAborted, payload, poolConfig, World } from './support.ts';

const LOCKED = databaseError('55P03');
const settle = async () => {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
};

function withTimers(t: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
}

describe('a finish that meets a lock', () => {
  it('is tried after a tenth of a second, then after two, three and so on', async (t) => {
    withTimers(t);
    const world = new World();
    const id = world.send(payload(1));
    let calls = 0;
    world.onFinish = () => {
      if (++calls <= 4) throw LOCKED;
    };
    const step = world.step();
    await settle();
    assert.equal(calls, 1);
    for (const [pauseMs, expected] of [
      [99, 1],
      [1, 2],
      [199, 2],
      [1, 3],
      [299, 3],
      [1, 4],
      [400, 5],
    ] as const) {
      mock.timers.tick(pauseMs);
      await settle();
      assert.equal(calls, expected);
    }
    assert.deepEqual((await step).outcomes, { committed: 1 });
    const told = world.log.filter(({ message }) => message === 'a finish was refused');
    assert.deepEqual(
      told.map(({ msg_id, cause }) => [msg_id, cause]),
      [[id, LOCKED]],
    );
  });

  it('is given up after twenty tries, and its lease runs out', async (t) => {
    withTimers(t);
    const world = new World();
    world.send(payload(1));
    let calls = 0;
    world.onFinish = () => {
      calls++;
      throw LOCKED;
    };
    const failed = assert.rejects(world.step(), LOCKED);
    for (let tries = 1; tries <= 30; tries++) {
      await settle();
      mock.timers.tick(3_000);
    }
    await failed;
    assert.equal(calls, 21, 'once with the others, and twenty times alone');
  });

  it('is not tried again where the database says something else meanwhile', async (t) => {
    withTimers(t);
    const world = new World();
    world.send(payload(1));
    let calls = 0;
    world.onFinish = () => {
      throw ++calls === 1 ? LOCKED : databaseError('08006');
    };
    const failed = assert.rejects(world.step(), { code: '08006' });
    await settle();
    mock.timers.tick(100);
    await failed;
    assert.equal(calls, 2);
  });

  it('is left to its lease by a worker that stops, at once and between two tries', async (t) => {
    withTimers(t);
    for (const stopsAt of [1, 3]) {
      const world = new World();
      const stopping = new AbortController();
      for (let n = 1; n <= 2; n++) world.send(payload(n));
      let calls = 0;
      world.onFinish = () => {
        if (++calls === stopsAt) stopping.abort();
        throw LOCKED;
      };
      const failed = assert.rejects(world.step(stopping.signal), LOCKED);
      for (let tries = 0; tries < 3; tries++) {
        await settle();
        mock.timers.tick(1_000);
      }
      await failed;
      assert.equal(calls, stopsAt === 1 ? 1 : 4, `stopped at call ${stopsAt}`);
    }
  });

  it('of three pools takes two connections, and the finish of a fourth goes by them', async () => {
    const world = new World();
    for (const name of ['a', 'b', 'c', 'd']) world.pools.set(name, poolConfig(name));
    const poolOf = new Map<number, string>();
    for (const pool_id of ['a', 'b', 'c', 'd'])
      for (let n = 0; n < 2; n++) poolOf.set(world.send(payload(n, { pool_id })), pool_id);
    let underWay = 0;
    let most = 0;
    const release: (() => void)[] = [];
    const asked = new Set<string>();
    world.onFinish = async (finishes: readonly Finish[]) => {
      const pool = poolOf.get(finishes[0]?.msg_id ?? 0) ?? '';
      if (pool === 'd') return;
      // The whole set of each pool is refused once; its halves wait for the other session.
      if (!asked.has(pool)) {
        asked.add(pool);
        throw LOCKED;
      }
      most = Math.max(most, ++underWay);
      await new Promise<void>((resolve) => release.push(resolve));
      underWay--;
    };
    const step = world.step(neverAborted);
    await settle();
    const carried = [...world.finishes.keys()].map((id) => poolOf.get(id));
    assert.deepEqual([carried, most], [['d', 'd'], 2]);
    for (let turn = 0; turn < 6; turn++) {
      for (const resolve of release.splice(0)) resolve();
      await settle();
    }
    assert.deepEqual((await step).outcomes, { committed: 8 });
    assert.equal(most, 2);
  });
});

describe('a finish that is refused', () => {
  const refusing = async (code: string, ids: number) => {
    const world = new World();
    for (let n = 1; n <= ids; n++) world.send(payload(n));
    let calls = 0;
    world.onFinish = () => {
      calls++;
      throw databaseError(code);
    };
    await assert.rejects(world.step(), { code });
    return { calls, told: world.log.filter(({ message }) => message === 'a finish was refused').length };
  };

  it('for its data, and has no reason that could be left out, leaves the message to its lease', async () => {
    assert.deepEqual(await refusing('22P05', 1), { calls: 1, told: 1 });
  });

  it('for another cause is not told as a message of its own', async () => {
    assert.deepEqual(await refusing('08006', 2), { calls: 1, told: 0 });
  });
});
