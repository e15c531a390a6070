// Whose failure is it: the message's, or its target's?

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Unreachable } from '#core/bridge/ports.ts';
import { databaseError, neverAborted, payload, poolConfig, World } from './support.ts';

const HOOK = 'https://hook.example/v';
const HOUR_MS = 3_600_000;
const TEN_MINUTES_MS = 600_000;

type Failing = { name: string; world: (isFailing: (user: string) => boolean) => World };

function hooked(fail: () => number): (isFailing: (user: string) => boolean) => World {
  return (isFailing) => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { validation_webhook_url: HOOK, max_retries: 4 }));
    world.answer = async (_, one) => (isFailing(String(one.user_id)) ? fail() : 200);
    return world;
  };
}

function failing(error: Error): () => never {
  return () => {
    throw error;
  };
}

/** Each way a target can fail one message that may be the message's own doing. */
const OWN_FAILURES: Failing[] = [
  { name: 'a hook that answers 500', world: hooked(() => 500) },
  { name: 'a hook that cuts the connection', world: hooked(failing(databaseError('ECONNRESET'))) },
  { name: 'a hook that never answers', world: hooked(failing(new DOMException('', 'TimeoutError'))) },
  {
    name: 'a function that breaks',
    world: (isFailing) => {
      const world = new World();
      world.pools.set('pool', poolConfig('pool', { commit_rpc_name: 'my_commit', max_retries: 4 }));
      world.callCustom = (_, one) => {
        if (isFailing(String(one.user_id))) throw databaseError('XX000');
      };
      return world;
    },
  },
];

/** From 0 to 1, the same in each run. */
function seeded(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Steps an hour apart, so that no pause and no delay stands between them. */
async function steps(world: World, count: number, before: (round: number) => void = () => undefined) {
  const outcomes: Record<string, number>[] = [];
  for (let round = 0; round < count; round++) {
    before(round);
    outcomes.push((await world.step()).outcomes);
    world.nowMs += HOUR_MS;
  }
  return outcomes;
}

for (const { name, world: make } of OWN_FAILURES) {
  test(`${name} for one message alone, in a quiet pool: it dies at max_retries`, async () => {
    const world = make(() => true);
    world.send(payload(1));
    assert.deepEqual(await steps(world, 4), [{ retry: 1 }, { retry: 1 }, { retry: 1 }, { dead_letter: 1 }]);
  });

  test(`${name} for one message pauses no neighbour, and it dies at max_retries`, async () => {
    const world = make((user) => user === 'user 1');
    world.send(payload(1));
    const seen = await steps(world, 5, (round) => {
      for (let n = 2; n <= 4; n++) world.send(payload(10 * (round + 1) + n));
    });
    const beside = { retry: 1, committed: 3 };
    assert.deepEqual(seen, [beside, beside, beside, { dead_letter: 1, committed: 3 }, { committed: 3 }]);
  });

  test(`${name} for one message after another is down: no message loses an attempt, from the first on`, async () => {
    let isDown = true;
    const world = make(() => isDown);
    for (let n = 1; n <= 40; n++) world.send(payload(n));
    for (const outcomes of await steps(world, 20)) assert.deepEqual(Object.keys(outcomes), ['outage']);
    assert.ok(world.queue.every((message) => message.attempts === 0));
    isDown = false;
    assert.deepEqual((await world.bridge.drain(neverAborted)).outcomes, { committed: 40 });
  });

  test(`${name} after an outage that is over is the message’s own failure again`, async () => {
    let isDown = true;
    const world = make((user) => isDown || user === 'user 1');
    for (let n = 1; n <= 4; n++) world.send(payload(n));
    assert.deepEqual(await steps(world, 1), [{ outage: 4 }]);
    isDown = false;
    world.random = seeded();
    await steps(world, 40);
    assert.equal(world.queue.length, 0);
    assert.deepEqual(
      [1, 2, 3, 4].map((id) => world.endOf(id)?.verdict),
      ['dead_letter', 'committed', 'committed', 'committed'],
    );
  });

  test(`${name} for many messages at the head of the queue does not starve one behind them`, async () => {
    const world = make((user) => user !== 'user 99');
    world.random = seeded();
    for (let n = 1; n <= 40; n++) world.send(payload(n));
    const healthy = world.send(payload(99));
    const endMs = world.nowMs + TEN_MINUTES_MS;
    while (world.nowMs < endMs && world.endOf(healthy) === undefined) {
      const { pausedUntilMs } = await world.step();
      world.nowMs = Math.max(pausedUntilMs, world.nowMs + 250);
    }
    assert.equal(world.endOf(healthy)?.verdict, 'committed');
  });
}

test('failures with a success between are not in a row; those in a row are all forgiven', async () => {
  const world = hooked(() => 500)((user) => user !== 'user 3');
  for (let n = 1; n <= 6; n++) world.send(payload(n));
  assert.deepEqual((await world.step()).outcomes, { retry: 2, committed: 1, outage: 3 });
});

for (const [name, answer] of Object.entries<() => number>({
  'a hook that cannot be reached': failing(new Unreachable('connect ECONNREFUSED')),
  'a hook that answers 429': () => 429,
  'a hook that answers 502': () => 502,
  'a hook that answers 503': () => 503,
  'a hook that answers 504': () => 504,
})) {
  test(`${name} is down at once, and one message alone in its pool outlives it`, async () => {
    let isDown = true;
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { validation_webhook_url: HOOK, max_retries: 2 }));
    world.answer = async () => (isDown ? answer() : 200);
    world.send(payload(1));
    for (const outcomes of await steps(world, 20)) assert.deepEqual(outcomes, { outage: 1 });
    isDown = false;
    assert.deepEqual(await steps(world, 1), [{ committed: 1 }]);
  });
}

test('one message that fails beside an outage that is over by then does not profit from it', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { validation_webhook_url: HOOK, max_retries: 4 }));
  const answers = [503, 500, 500, 500];
  world.answer = async () => answers.shift() ?? 500;
  world.send(payload(1));
  const retry = { retry: 1 };
  assert.deepEqual(await steps(world, 5), [{ outage: 1 }, retry, retry, retry, { dead_letter: 1 }]);
});

test('one message for which a pool’s own function lacks something dies alone, and starves no neighbour', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_rpc_name: 'my_commit', max_retries: 4 }));
  world.callCustom = (_, one) => {
    if (one.user_id === 'user 1') throw databaseError('42883');
  };
  for (let n = 1; n <= 20; n++) world.send(payload(n));
  world.random = seeded();
  await steps(world, 20);
  assert.deepEqual(world.queue, []);
  assert.equal(world.endOf(1)?.verdict, 'dead_letter');
  for (let n = 2; n <= 20; n++) assert.equal(world.endOf(n)?.verdict, 'committed');
});
