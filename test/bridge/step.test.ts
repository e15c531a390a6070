// What a step reports: to its caller, to the metrics and to the log.

import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { Delivery } from '#core/bridge/delivery.ts';
import { Unreachable } from '#core/bridge/ports.ts';
import { databaseError, LEASE_SEC, payload, poolConfig, World } from './support.ts';

const HOOK = 'https://hook.example/secret';
const down = (): never => {
  throw databaseError('08006');
};

/** A pool that commits to the ledger, and one that commits by hook. */
function twoPools(): World {
  const world = new World();
  world.pools.set('hooked', poolConfig('hooked', { commit_webhook_url: HOOK }));
  return world;
}

describe('a step', () => {
  it('says when the first of two paused targets may be tried again', async () => {
    const world = twoPools();
    world.finalizeBatch = down;
    world.answer = () => 503;
    world.send(payload(1));
    await world.step();
    world.nowMs += 100;
    world.send(payload(2, { pool_id: 'hooked' }));
    const { pausedUntilMs } = await world.step();
    assert.equal(pausedUntilMs, 1_000_500);
    assert.deepEqual((await world.step()).pausedUntilMs, 1_000_500);
    assert.deepEqual(world.leftAlone.at(-1), ['pool', 'hooked']);
  });

  it('counts a target as down once, under its host, and as up again with the first answer', async () => {
    const world = twoPools();
    world.answer = () => 503;
    world.send(payload(1, { pool_id: 'hooked' }));
    await world.step();
    assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 1);
    world.nowMs += 1_000;
    await world.step();
    assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 1);
    world.answer = () => 200;
    world.nowMs += 5_000;
    await world.step();
    assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 0);
  });

  for (const [what, change] of Object.entries<(world: World) => void>({
    'has another hook': (world) =>
      world.pools.set('hooked', poolConfig('hooked', { commit_webhook_url: 'https://new.example/c' })),
    'commits to the ledger': (world) => world.pools.set('hooked', poolConfig('hooked')),
    'is gone': (world) => world.pools.delete('hooked'),
  }))
    it(`counts a hook no longer as down when the only pool that needed it ${what}`, async () => {
      const world = twoPools();
      world.answer = (url) => (url === HOOK ? 503 : 200);
      world.send(payload(1, { pool_id: 'hooked' }));
      await world.step();
      assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 1);
      change(world);
      world.nowMs += 1_000;
      const { total, pausedUntilMs } = await world.step();
      assert.deepEqual([total, pausedUntilMs], [1, 0]);
      assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 0);
      world.send(payload(2));
      await world.step();
      assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 0, 'once');
    });

  it('still counts it as down while another pool needs it', async () => {
    const world = twoPools();
    world.pools.set('beside', poolConfig('beside', { validation_webhook_url: HOOK }));
    world.answer = () => 503;
    for (const pool_id of ['hooked', 'beside']) world.send(payload(world.queue.length, { pool_id }));
    await world.step();
    world.pools.set('hooked', poolConfig('hooked'));
    world.nowMs += 1_000;
    await world.step();
    assert.equal(world.counted.get('sluice_bridge_breaker_open hook.example'), 1);
  });

  it('tries the least delivered first while a target is suspect, and by arrival otherwise', async () => {
    const world = new World();
    for (const [n, read_ct] of [
      [1, 5],
      [2, 0],
      [3, 3],
    ] as const)
      world.send(payload(n), { read_ct });
    world.finalizeBatch = down;
    await world.step();
    const users = () => world.ledgerCalls.at(-1)?.map(({ user_id }) => user_id);
    assert.deepEqual(users(), ['user 1', 'user 2', 'user 3']);
    world.nowMs += 1_000;
    await world.step();
    assert.deepEqual(users(), ['user 2', 'user 3', 'user 1']);
  });

  it('gives equals a random place while a target is suspect', async () => {
    const world = new World();
    for (const n of [1, 2]) world.send(payload(n));
    world.finalizeBatch = down;
    await world.step();
    const places = [0.9, 0.1];
    world.random = () => places.shift() ?? 1;
    world.nowMs += 1_000;
    await world.step();
    assert.deepEqual(
      world.ledgerCalls.at(-1)?.map(({ user_id }) => user_id),
      ['user 2', 'user 1'],
    );
  });
});

describe('a heartbeat', () => {
  afterEach(() => mock.timers.reset());

  it('that fails is a line in the log, and the step goes on', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    const world = new World();
    const cause = databaseError('08006');
    world.send(payload(1));
    world.finalizeBatch = (payloads) => {
      world.extending = Promise.reject(cause);
      mock.timers.tick((LEASE_SEC * 1_000) / 3);
      return payloads.map(() => 'committed');
    };
    assert.deepEqual((await world.step()).outcomes, { committed: 1 });
    assert.deepEqual(
      world.log.filter(({ level }) => level === 'warn'),
      [{ level: 'warn', message: 'heartbeat failed', cause }],
    );
  });
});

describe('a delivery', () => {
  const deliveryOf = (message: unknown, attempts = 1) =>
    new Delivery({ msg_id: 1, read_ct: 1, attempts, takeovers: 0, message, claim_state: 'queued' });

  it('has neither payload nor rules before it is known to have them', () => {
    assert.throws(() => deliveryOf('no object').payload, /^Error: a malformed message has no payload$/);
    assert.throws(
      () => deliveryOf(payload(1)).config,
      /^Error: a delivery without a pool has no configuration$/,
    );
  });

  it('without a verdict is handed back', () => {
    const { verdict, delay_ms } = deliveryOf(payload(1)).toFinish(() => 1);
    assert.deepEqual([verdict, delay_ms], ['outage', 500]);
  });

  it('waits between half and all of a second, doubled with each attempt, up to a minute', () => {
    const waits = (attempts: number) =>
      [0, 1].map((random) => {
        const delivery = deliveryOf(payload(1), attempts);
        delivery.end('retry', 'why');
        return delivery.toFinish(() => random).delay_ms;
      });
    assert.deepEqual([0, 1, 2, 5, 7, 99].map(waits), [
      [500, 1_000],
      [500, 1_000],
      [1_000, 2_000],
      [8_000, 16_000],
      [30_000, 60_000],
      [30_000, 60_000],
    ]);
  });

  it('tells its last error, where its message has one', () => {
    assert.equal(deliveryOf(payload(1, { last_error: 'why' })).lastError, 'max_retries: why');
    assert.equal(deliveryOf(payload(1, { last_error: 7 })).lastError, 'max_retries');
  });
});

describe('a hook that gives no answer', () => {
  it('is told with message, pool, claim, host and cause, and retried with the reason', async () => {
    const world = twoPools();
    const cause = new Error('cut');
    world.answer = () => Promise.reject(cause);
    const id = world.send(payload(1, { pool_id: 'hooked' }));
    assert.deepEqual((await world.step()).outcomes, { retry: 1 });
    assert.equal(world.endOf(id)?.reason, 'no answer: Error: cut');
    const [line] = world.log.filter(({ message }) => message === 'a hook gave no answer');
    assert.deepEqual(
      [line?.level, line?.msg_id, line?.pool_id, line?.target, line?.cause],
      ['warn', id, 'hooked', 'hook.example', cause],
    );
    assert.doesNotMatch(JSON.stringify(world.log), /secret/, 'the rest of its address may hold a secret');
  });

  it('because it cannot be reached is an outage, not a failure of the message', async () => {
    const world = twoPools();
    world.answer = () => Promise.reject(new Unreachable('no route'));
    const id = world.send(payload(1, { pool_id: 'hooked' }));
    assert.deepEqual((await world.step()).outcomes, { outage: 1 });
    assert.equal(world.endOf(id)?.reason, 'hook unavailable');
    assert.equal(new Unreachable('x').name, 'Unreachable');
  });

  for (const status of [408, 425])
    it(`but asks for patience with ${status} is retried, and not taken for down`, async () => {
      const world = twoPools();
      world.answer = () => status;
      const id = world.send(payload(1, { pool_id: 'hooked' }));
      const { outcomes, pausedUntilMs } = await world.step();
      assert.deepEqual([outcomes, pausedUntilMs], [{ retry: 1 }, 0]);
      assert.equal(world.endOf(id)?.reason, `status ${status}`);
    });
});
