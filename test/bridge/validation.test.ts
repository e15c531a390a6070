// Webhooks of a pool: who is asked, how often, and what each answer does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Unreachable } from '#core/bridge/ports.ts';
import { databaseError, neverAborted, payload, poolConfig, uuid, World } from './support.ts';

const VALIDATE = 'https://hook.example/validate';
const COMMIT = 'https://hook.example/commit';

function validating(rules = {}): World {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { validation_webhook_url: VALIDATE, ...rules }));
  return world;
}

const verdicts = (world: World, msgId: number) => world.finishes.get(msgId)?.map((finish) => finish.verdict);

test('a yes is remembered before the commit, and the key is the slot of a first claim', async () => {
  const world = validating();
  const id = world.send(payload(1));
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
  assert.deepEqual(verdicts(world, id), ['validated', 'committed']);
  const key = uuid(1_000_001);
  assert.deepEqual(world.posts, [
    { url: VALIDATE, id: `validation_${key}`, key, claimId: uuid(1), payload: payload(1) },
  ]);
});

test('a validated claim is not validated again, whether its row or its message says so', async () => {
  const world = validating();
  world.send(payload(1), { claim_state: 'validated' });
  world.send(payload(2, { state: 'validated', claim_id: undefined }), { claim_state: null });
  assert.deepEqual((await world.step()).outcomes, { committed: 2 });
  assert.deepEqual(world.posts, []);
});

test('a commit that fails after a yes is retried without asking again', async () => {
  const world = validating();
  world.send(payload(1));
  let calls = 0;
  world.finalizeBatch = (payloads) => {
    if (calls++ === 0) throw databaseError('P0001', 'not yet');
    return payloads.map(() => 'committed');
  };
  assert.deepEqual((await world.step()).outcomes, { retry: 1 });
  world.nowMs += 60_000;
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
  assert.equal(world.posts.length, 1);
});

for (const status of [402, 409, 410, 422]) {
  test(`a ${status} of the validation ends the claim with a reason and does not commit it`, async () => {
    const world = validating();
    const id = world.send(payload(1));
    world.answer = () => status;
    assert.deepEqual((await world.step()).outcomes, { refused: 1 });
    assert.deepEqual(world.endOf(id)?.reason, `refused by validation: status ${status}`);
    assert.deepEqual(world.ledgerCalls, []);
  });
}

for (const status of [301, 302, 307, 400, 401, 403, 404, 405, 408, 413, 425, 451, 500, 501]) {
  test(`a ${status} of the validation is a failure of this message, to be retried`, async () => {
    const world = validating();
    const id = world.send(payload(1));
    world.answer = () => status;
    assert.deepEqual((await world.step()).outcomes, { retry: 1 });
    assert.equal(world.endOf(id)?.reason, `status ${status}`);
    assert.deepEqual(world.ledgerCalls, []);
  });
}

for (const status of [429, 502, 503, 504]) {
  test(`a ${status} of the validation is an outage: it costs no attempt, and the pool is left alone`, async () => {
    const world = validating();
    world.send(payload(1));
    world.answer = () => status;
    const report = await world.step();
    assert.deepEqual(report.outcomes, { outage: 1 });
    assert.equal(report.pausedUntilMs, world.nowMs + 500);
    await world.step();
    assert.deepEqual(world.leftAlone.at(-1), ['pool']);
  });
}

test('a mistyped address of the validation makes dead letters, and refuses no claim', async () => {
  const world = validating({ max_retries: 3 });
  const ids = Array.from({ length: 12 }, (_, n) => world.send(payload(n + 1)));
  world.answer = () => 404;
  for (const expected of ['retry', 'retry', 'dead_letter']) {
    assert.deepEqual((await world.step()).outcomes, { [expected]: 12 });
    world.nowMs += 60_000;
  }
  assert.deepEqual(world.ledgerCalls, []);
  assert.equal(world.endOf(ids[0] ?? 0)?.verdict, 'dead_letter');
});

test('refusals are counted, and logged at most once a minute for each pool', async () => {
  const world = validating();
  world.pools.set('other', poolConfig('other', { validation_webhook_url: VALIDATE }));
  world.answer = () => 409;
  const refuse = async (n: number, pool_id: string) => {
    world.send(payload(n, { pool_id }));
    await world.step();
  };
  for (const n of [1, 2, 3]) await refuse(n, 'pool');
  await refuse(4, 'other');
  world.nowMs += 60_000;
  await refuse(5, 'pool');
  world.nowMs += 60_000;
  await refuse(6, 'pool');
  await refuse(7, 'pool');
  world.nowMs += 60_000;
  // What was held back is told by the next look at the lanes.
  world.answer = () => 200;
  await refuse(8, 'other');
  assert.deepEqual(
    world.log
      .filter(({ message }) => message === 'validation refused claims')
      .map(({ level, pool_id, refused, reason }) => [level, pool_id, refused, reason]),
    [
      ['warn', 'pool', 1, 'refused by validation: status 409'],
      ['warn', 'other', 1, 'refused by validation: status 409'],
      ['warn', 'pool', 2, 'refused by validation: status 409'],
      ['warn', 'pool', 1, 'refused by validation: status 409'],
      ['warn', 'pool', 2, 'refused by validation: status 409'],
    ],
  );
  assert.equal(world.counted.get('sluice_bridge_deliveries_total refused'), 7);
});

test('a validation that cannot be reached is an outage, and its line names message, pool and claim', async () => {
  const world = validating();
  const id = world.send(payload(1));
  world.answer = () => {
    throw new Unreachable('connect ECONNREFUSED');
  };
  assert.deepEqual((await world.step()).outcomes, { outage: 1 });
  const line = world.log.find(({ message }) => message === 'a hook gave no answer');
  assert.deepEqual(
    [line?.msg_id, line?.pool_id, line?.claim_id, line?.target],
    [id, 'pool', uuid(1), 'hook.example'],
  );
});

test('a validation that lost its lease goes no further', async () => {
  const world = validating();
  world.send(payload(1));
  world.answer = () => {
    const [first] = world.queue;
    if (first) world.queue[0] = { ...first, read_ct: first.read_ct + 1 };
    return 200;
  };
  assert.deepEqual((await world.step()).outcomes, { lost_lease: 1 });
  assert.deepEqual(world.ledgerCalls, []);
});

test('a pool with a commit hook is committed by it, under the same key each time', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_webhook_url: COMMIT }));
  const id = world.send(payload(1));
  world.answer = () => 500;
  assert.deepEqual((await world.step()).outcomes, { retry: 1 });
  world.nowMs += 60_000;
  world.answer = () => 204;
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
  assert.deepEqual(
    world.posts.map((post) => [post.url, post.key]),
    [
      [COMMIT, uuid(1_000_001)],
      [COMMIT, uuid(1_000_001)],
    ],
  );
  assert.deepEqual(verdicts(world, id), ['retry', 'committed']);
  assert.equal(world.ledgersMade, 0);
});

test('a commit hook that refuses does not end the claim: it is retried, then an operator has to look', async () => {
  const world = validating({ commit_webhook_url: COMMIT, max_retries: 3 });
  const id = world.send(payload(1));
  world.answer = (url) => (url === COMMIT ? 422 : 200);
  for (const expected of ['retry', 'retry', 'dead_letter']) {
    await world.step();
    assert.equal(world.endOf(id)?.verdict, expected);
    if (expected === 'retry') assert.equal(world.endOf(id)?.reason, 'refused by the commit hook: status 422');
    world.nowMs += 60_000;
  }
  assert.equal(world.posts.filter((post) => post.url === VALIDATE).length, 1);
});

test('thirty-two calls of one hook run at once, and no more are taken', async () => {
  const world = validating();
  for (let n = 1; n <= 50; n++) world.send(payload(n));
  let running = 0;
  let most = 0;
  world.answer = async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    return 200;
  };
  assert.deepEqual((await world.step()).outcomes, { committed: 32 });
  assert.equal(most, 32);
  assert.deepEqual((await world.bridge.drain(neverAborted)).outcomes, { committed: 18 });
});

test('when DB1 fails during validation the step fails, and no call is made after that', async () => {
  const world = validating();
  for (let n = 1; n <= 50; n++) world.send(payload(n));
  world.onFinish = () => {
    throw new Error('DB1 is gone');
  };
  let running = 0;
  world.answer = async () => {
    running++;
    await new Promise(setImmediate);
    running--;
    return 200;
  };
  await assert.rejects(world.step(), /DB1 is gone/);
  assert.equal(running, 0);
  const { length } = world.posts;
  assert.equal(length, 32);
  await new Promise(setImmediate);
  assert.equal(world.posts.length, length);
});
