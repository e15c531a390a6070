// A validation hook's no frees the slot, unless an earlier delivery may have left a ticket: then the ledger is asked first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseError, payload, poolConfig, World } from './support.ts';

const VALIDATE = 'https://hook.example/validate';
const COMMIT = 'https://hook.example/commit';

for (const [name, rules, more, asked] of [
  ['its first delivery', {}, {}, 0],
  ['a second delivery', {}, { read_ct: 1 }, 1],
  ['a replayed message', {}, { replayed: true }, 1],
  ['a second delivery of a pool with a commit hook', { commit_webhook_url: COMMIT }, { read_ct: 1 }, 0],
] as const)
  test(`${name} that is refused asks the ledger for a ticket ${asked} times`, async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { validation_webhook_url: VALIDATE, ...rules }));
    world.answer = () => 422;
    const { replayed, ...taken } = { replayed: false, ...more };
    const id = world.send(payload(1, replayed ? { replayed_from: 7 } : {}), taken);
    assert.deepEqual((await world.step()).outcomes, { refused: 1 });
    assert.equal(world.asked.length, asked);
    assert.match(world.endOf(id)?.reason ?? '', /^refused by validation: /);
  });

test('a refusal that needs the ledger waits while another pool has found it down', async () => {
  const world = new World();
  world.pools.set('asking', poolConfig('asking', { validation_webhook_url: VALIDATE }));
  world.finalizeBatch = () => {
    throw databaseError('ECONNREFUSED');
  };
  world.answer = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    return 422;
  };
  const id = world.send(payload(1, { pool_id: 'asking' }), { read_ct: 1 });
  world.send(payload(2));
  assert.deepEqual((await world.step()).outcomes, { outage: 2 });
  assert.deepEqual([world.endOf(id)?.reason, world.asked.length], ['ledger unavailable', 0]);
});

test('a yes that could not be kept, because the lease is lost, commits nothing', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { validation_webhook_url: VALIDATE }));
  world.send(payload(1));
  world.onFinish = () => {
    for (const [at, message] of world.queue.entries())
      world.queue[at] = { ...message, read_ct: message.read_ct + 1 };
  };
  assert.deepEqual((await world.step()).outcomes, { lost_lease: 1 });
  assert.equal(world.ledgerCalls.length, 0);
  const told = world.log.find(({ message }) => message === 'delivery');
  assert.deepEqual([told?.level, told?.outcome, told?.reason], ['warn', 'lost_lease', 'lost_lease']);
});

test('a message that nine workers were lost with is tried, and one with ten is a dead letter that says so', async () => {
  for (const [takeovers, verdict, reason] of [
    [9, 'committed', null],
    [10, 'dead_letter', 'takeovers: 10 workers were lost with it'],
  ] as const) {
    const world = new World();
    const id = world.send(payload(1), { takeovers });
    await world.step();
    const end = world.endOf(id);
    assert.deepEqual([end?.verdict, end?.reason], [verdict, reason]);
  }
});
