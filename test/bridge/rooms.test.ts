// Whose room a pool's messages take up while they are under way, and when they leave it: a bridge that runs, on ports in memory.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { neverAborted, payload, poolConfig, World } from './support.ts';

const HOOK = 'https://hook.example/';
/** All that waits for promises and not for time. */
const settle = async () => {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Runs the bridge while `during` looks at it. */
async function running(world: World, during: () => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const run = world.bridge.run(stopping.signal);
  try {
    await settle();
    await during();
  } finally {
    stopping.abort();
    await run;
  }
}

/** Calls that wait until a test ends them. */
function gates() {
  const waiting: (() => void)[] = [];
  return {
    waiting,
    pass: () => new Promise<void>((resolve) => waiting.push(resolve)),
    open: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

describe('a bridge that runs', () => {
  it('hears of new messages, and tells what became of each group', async () => {
    const world = new World();
    const groups: unknown[] = [];
    const stopping = new AbortController();
    const run = world.bridge.run(stopping.signal, (outcomes) => groups.push(outcomes));
    await settle();
    world.send(payload(1));
    world.bridge.wake();
    await settle();
    assert.deepEqual(groups, [{ committed: 1 }]);
    stopping.abort();
    await run;
  });

  it('has thirty-two calls of a hook under way, and the next when one has been finished', async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { commit_webhook_url: HOOK }));
    const { pass, waiting, open } = gates();
    world.answer = async () => {
      await pass();
      return 200;
    };
    const ids = Array.from({ length: 40 }, (_, n) => world.send(payload(n)));
    await running(world, async () => {
      assert.equal(world.posts.length, 32);
      waiting.shift()?.();
      await settle();
      assert.equal(world.endOf(ids[0] ?? 0)?.verdict, 'committed', 'finished, whatever the others do');
      assert.equal(world.posts.length, 33);
      open();
      await settle();
      open();
    });
    assert.equal(world.queue.length, 0);
  });

  it('gives the ledger no more than its batches, and the next when one has ended', async () => {
    const world = new World(2);
    const { pass, open } = gates();
    world.finalizeBatch = async (payloads) => {
      await pass();
      return payloads.map(() => 'committed');
    };
    for (let n = 0; n < 6; n++) world.send(payload(n));
    await running(world, async () => {
      assert.equal(world.ledgerCalls.flat().length, 2);
      open();
      await settle();
      assert.equal(world.ledgerCalls.flat().length, 4);
      open();
      await settle();
      open();
    });
    assert.equal(world.queue.length, 0);
  });

  it('leaves the room of the ledger to others while a hook keeps a pool waiting', async () => {
    const world = new World(2);
    world.pools.set('slow', poolConfig('slow', { validation_webhook_url: HOOK }));
    const { pass, open } = gates();
    world.answer = async () => {
      await pass();
      return 200;
    };
    for (let n = 0; n < 2; n++) world.send(payload(n, { pool_id: 'slow' }));
    await running(world, async () => {
      assert.equal(world.posts.length, 2);
      world.send(payload(10));
      world.send(payload(11));
      world.bridge.wake();
      await settle();
      assert.equal(world.ledgerCalls.flat().length, 2);
      open();
    });
  });
});

describe('a step', () => {
  it('takes as many batches as may be on their way, an equal share of each pool', async () => {
    const takenWith = async (batches: number) => {
      const world = new World(2, undefined, batches);
      world.pools.set('other', poolConfig('other'));
      for (let n = 0; n < 3; n++)
        for (const pool_id of ['pool', 'other']) world.send(payload(n, { pool_id }));
      return (await world.step()).total;
    };
    assert.deepEqual([await takenWith(1), await takenWith(2)], [2, 4]);
  });

  it('works on the pools that share a lane apart, each by its own rules', async () => {
    const world = new World();
    world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
    const first = world.send(payload(1));
    world.send(payload(2, { pool_id: 'own' }), { msg_id: first + 100 });
    assert.deepEqual((await world.step()).outcomes, { committed: 2 });
    assert.deepEqual([world.ledgerCalls.flat().length, world.customCalls.length], [1, 1]);
  });

  it('finishes nothing twice, and nothing where nothing is left', async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { commit_webhook_url: HOOK }));
    const sizes: number[] = [];
    world.onFinish = (finishes) => void sizes.push(finishes.length);
    for (let n = 0; n < 3; n++) world.send(payload(n));
    await world.step(neverAborted);
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      3,
    );
    assert.ok(!sizes.includes(0));
  });
});
