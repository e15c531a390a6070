// What the bridge decides, message by message, when both databases answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseError, payload, poolConfig, uuid, World } from './support.ts';

/** Read back from JSON text, because a literal that deep would not compile. */
const nested = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

const MALFORMED: [name: string, message: unknown, reason: string][] = [
  ['null', null, 'malformed: not an object'],
  ['nothing at all', undefined, 'malformed: not an object'],
  ['a list', [payload(1)], 'malformed: not an object'],
  ['text', JSON.stringify(payload(1)), 'malformed: not an object'],
  ['a number', 7, 'malformed: not an object'],
  ['true', true, 'malformed: not an object'],
  ['an empty object', {}, 'malformed: pool_id'],
  ['no pool', payload(1, { pool_id: undefined }), 'malformed: pool_id'],
  ['a pool that is null', payload(1, { pool_id: null }), 'malformed: pool_id'],
  ['a pool that is a number', payload(1, { pool_id: 7 }), 'malformed: pool_id'],
  ['a pool that is empty', payload(1, { pool_id: '' }), 'malformed: pool_id'],
  ['a pool of 201 characters', payload(1, { pool_id: 'x'.repeat(201) }), 'malformed: pool_id'],
  ['no slot', payload(1, { resource_id: undefined }), 'malformed: resource_id'],
  ['a slot that is not a uuid', payload(1, { resource_id: 'seat 7' }), 'malformed: resource_id'],
  ['a slot in a list', payload(1, { resource_id: [uuid(1)] }), 'malformed: resource_id'],
  ['a slot with a line feed', payload(1, { resource_id: `${uuid(1)}\n` }), 'malformed: resource_id'],
  ['no user', payload(1, { user_id: undefined }), 'malformed: user_id'],
  ['a user that is an object', payload(1, { user_id: {} }), 'malformed: user_id'],
  ['a user of 201 characters', payload(1, { user_id: 'x'.repeat(201) }), 'malformed: user_id'],
  ['a user of 201 wide characters', payload(1, { user_id: '😀'.repeat(201) }), 'malformed: user_id'],
  ['a claim that is not a uuid', payload(1, { claim_id: 'mine' }), 'malformed: claim_id'],
  ['a claim that is a number', payload(1, { claim_id: 5 }), 'malformed: claim_id'],
  ['more than 64 KB', payload(1, { note: 'x'.repeat(65 * 1024) }), 'malformed: too large'],
  ['15,000 levels', payload(1, { note: nested(15_000) }), 'malformed: nested too deeply'],
];

for (const [name, message, reason] of MALFORMED) {
  test(`a message that is or has ${name} is a dead letter, and its neighbours are committed`, async () => {
    const world = new World();
    const before = world.send(payload(10));
    const odd = world.send(message, { claim_state: null });
    const after = world.send(payload(11));
    const report = await world.step();
    assert.deepEqual(report.outcomes, { committed: 2, dead_letter: 1 });
    assert.equal(world.endOf(odd)?.verdict, 'dead_letter');
    assert.equal(world.endOf(odd)?.reason, reason);
    for (const good of [before, after]) assert.equal(world.endOf(good)?.verdict, 'committed');
    assert.deepEqual(world.ledgerCalls, [[payload(10), payload(11)]]);
  });
}

test('a batch of nothing but malformed messages asks for no pool and no ledger', async () => {
  const world = new World();
  world.send(null);
  world.send([]);
  assert.deepEqual((await world.step()).outcomes, { dead_letter: 2 });
  assert.equal(world.ledgersMade, 0);
});

test('ids of 200 characters are carried, however wide the characters are', async () => {
  const world = new World();
  world.send(payload(1, { user_id: '😀'.repeat(200) }));
  world.send(payload(2, { user_id: 'x'.repeat(200) }));
  assert.deepEqual((await world.step()).outcomes, { committed: 2 });
});

test('a message without a claim_id is carried under the id of its slot', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_webhook_url: 'https://hook.example/c' }));
  world.send(payload(1, { claim_id: undefined }), { claim_state: null });
  world.send(payload(2, { claim_id: null }), { claim_state: null });
  assert.deepEqual((await world.step()).outcomes, { committed: 2 });
  assert.deepEqual(
    world.posts.map((post) => post.key),
    [uuid(1_000_001), uuid(1_000_002)],
  );
});

test('an empty queue is an empty report', async () => {
  const world = new World();
  assert.deepEqual(await world.step(), { total: 0, outcomes: {}, pausedUntilMs: 0 });
  assert.equal(world.ledgersMade, 0);
});

test('a message of an unknown pool is a dead letter and gets no other pool’s rules', async () => {
  const world = new World();
  const lost = world.send(payload(1, { pool_id: 'nowhere' }));
  const good = world.send(payload(2));
  await world.step();
  assert.equal(world.endOf(lost)?.reason, 'unknown_pool');
  assert.equal(world.endOf(good)?.verdict, 'committed');
});

test('a rule that changes counts for the next messages of its pool', async () => {
  const world = new World();
  world.send(payload(1), { attempts: 1 });
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
  world.pools.set('pool', poolConfig('pool', { max_retries: 1 }));
  world.send(payload(2), { attempts: 1 });
  assert.deepEqual((await world.step()).outcomes, { dead_letter: 1 });
});

test('a message is tried until its attempts reach max_retries, and then dies with its last error', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { max_retries: 3 }));
  const last = world.send(payload(1), { attempts: 1 });
  const spent = world.send(payload(2), { attempts: 2 });
  const explained = world.send(payload(3, { last_error: 'status 500' }), { attempts: 7 });
  await world.step();
  assert.equal(world.endOf(last)?.verdict, 'committed');
  assert.deepEqual([world.endOf(spent)?.verdict, world.endOf(spent)?.reason], ['dead_letter', 'max_retries']);
  assert.equal(world.endOf(explained)?.reason, 'max_retries: status 500');
});

test('a message whose claim is of another slot, pool or user is a dead letter, and becomes no ticket', async () => {
  const world = new World();
  const forged = world.send(payload(1), { claim_state: 'mismatch' });
  world.send(payload(2));
  assert.deepEqual((await world.step()).outcomes, { committed: 1, dead_letter: 1 });
  assert.equal(world.endOf(forged)?.reason, 'malformed: the claim is of another slot, pool or user');
  assert.deepEqual(world.ledgerCalls, [[payload(2)]]);
});

test('a message does not become too large by what the queue adds to it', async () => {
  const world = new World();
  const note = 'x'.repeat(64 * 1024 - JSON.stringify(payload(1, { note: '' })).length);
  const added = { seen: 3, tried: 3, untried: [1, 3], last_error: 'y'.repeat(500), replayed_from: 17 };
  world.send(payload(1, { note, ...added }));
  const tooLarge = world.send(payload(2, { note: `${note}x`, ...added }));
  assert.deepEqual((await world.step()).outcomes, { committed: 1, dead_letter: 1 });
  assert.equal(world.endOf(tooLarge)?.reason, 'malformed: too large');
});

for (const state of ['released', 'expired', 'refused', 'discarded', 'committed']) {
  test(`a message whose claim is ${state} is gone without a call to the ledger`, async () => {
    const world = new World();
    const ended = world.send(payload(1), { claim_state: state, attempts: 99 });
    assert.deepEqual((await world.step()).outcomes, { gone: 1 });
    assert.equal(world.endOf(ended)?.reason, `the claim is ${state}`);
    assert.deepEqual(world.ledgerCalls, []);
  });
}

test('a ticket that was there already is as good as a new one, and a conflict is a dead letter', async () => {
  const world = new World();
  world.finalizeBatch = () => ['already', 'conflict', 'committed'];
  const ids = [1, 2, 3].map((n) => world.send(payload(n)));
  await world.step();
  assert.deepEqual(
    ids.map((id) => world.endOf(id)?.verdict),
    ['committed', 'dead_letter', 'committed'],
  );
  assert.equal(world.endOf(ids[1] ?? 0)?.reason, 'ticket_conflict');
});

test('a claim that the ledger has a tombstone of is gone, by a function of its pool as well', async () => {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  world.finalizeBatch = () => ['voided', 'committed'];
  world.callCustom = () => {
    throw databaseError('SL021');
  };
  const ids = [1, 2].map((n) => world.send(payload(n)));
  ids.push(world.send(payload(3, { pool_id: 'own' })));
  await world.step();
  assert.deepEqual(
    ids.map((id) => [world.endOf(id)?.verdict, world.endOf(id)?.reason]),
    [
      ['gone', 'the claim has ended'],
      ['committed', null],
      ['gone', 'the claim has ended'],
    ],
  );
  assert.equal(world.log.filter(({ level }) => level === 'warn').length, 0, 'no target is to blame');
});

test('a message whose claim is ending is left alone until it did', async () => {
  const world = new World();
  const id = world.send(payload(1), { claim_state: 'ending' });
  assert.deepEqual((await world.step()).outcomes, { untried: 1 });
  assert.deepEqual([world.endOf(id)?.reason, world.endOf(id)?.delay_ms], ['the claim is ending', 5_000]);
  assert.deepEqual(world.ledgerCalls, []);
});

test('a commit says what made it, and nothing where that is the ledger', async () => {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  world.pools.set('hook', poolConfig('hook', { commit_webhook_url: 'https://hook.example/c' }));
  const ids = ['pool', 'own', 'hook'].map((pool_id, n) => world.send(payload(n, { pool_id })));
  await world.step();
  assert.deepEqual(
    ids.map((id) => world.endOf(id)?.reason),
    [null, 'function:my_commit', 'hook'],
  );
});

test('one poison among 99 good costs its neighbours nothing and the ledger about 2 log2 n calls', async () => {
  for (const place of [1, 50, 64, 100]) {
    const world = new World();
    world.finalizeBatch = (payloads) => {
      if (payloads.some((one) => one.user_id === `user ${place}`)) throw databaseError('23514');
      return payloads.map(() => 'committed');
    };
    const ids = Array.from({ length: 100 }, (_, n) => world.send(payload(n + 1)));
    assert.deepEqual((await world.step()).outcomes, { committed: 99, dead_letter: 1 });
    assert.equal(world.endOf(ids[place - 1] ?? 0)?.verdict, 'dead_letter');
    assert.equal(world.endOf(ids[place - 1] ?? 0)?.reason, '23514: planted');
    assert.ok(world.ledgerCalls.length <= 15, `${world.ledgerCalls.length} calls`);
  }
});

for (const code of ['22P02', '23505', '23514', 'SL020']) {
  test(`data that the ledger refuses with ${code} is a dead letter at once`, async () => {
    const world = new World();
    world.finalizeBatch = () => {
      throw databaseError(code);
    };
    const id = world.send(payload(1));
    await world.step();
    assert.equal(world.endOf(id)?.verdict, 'dead_letter');
  });
}

test('a failure that may be mended is retried later and later, never at once', async () => {
  const world = new World();
  world.finalizeBatch = () => {
    throw databaseError('XX000');
  };
  const id = world.send(payload(1));
  const delays: number[] = [];
  for (let attempt = 1; attempt <= 9; attempt++) {
    await world.step();
    assert.equal(world.endOf(id)?.verdict, 'retry');
    const delay = world.endOf(id)?.delay_ms ?? 0;
    delays.push(delay);
    world.nowMs += delay;
  }
  assert.deepEqual(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  await world.step();
  assert.equal(world.endOf(id)?.verdict, 'dead_letter');
});

test('a pool with a function of its own is committed by it, one by one, and a failing one by itself', async () => {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  const good = world.send(payload(1, { pool_id: 'own' }));
  const bad = world.send(payload(2, { pool_id: 'own' }));
  const usual = world.send(payload(3));
  world.callCustom = (_, one) => {
    if (one.user_id === 'user 2') throw databaseError('P0001', 'not now');
  };
  await world.step();
  assert.deepEqual(
    world.customCalls.map((call) => [call.functionName, call.payload.user_id]),
    [
      ['my_commit', 'user 1'],
      ['my_commit', 'user 2'],
    ],
  );
  assert.equal(world.endOf(good)?.verdict, 'committed');
  assert.deepEqual([world.endOf(bad)?.verdict, world.endOf(bad)?.reason], ['retry', 'P0001: not now']);
  assert.equal(world.endOf(usual)?.verdict, 'committed');
  assert.deepEqual(world.ledgerCalls, [[payload(3)]]);
});

test('the ledger is asked for only where a pool needs it', async () => {
  const world = new World();
  world.pools.set('hook', poolConfig('hook', { commit_webhook_url: 'https://hook.example/c' }));
  world.send(payload(1, { pool_id: 'hook' }));
  await world.step();
  assert.equal(world.ledgersMade, 0);
  world.send(payload(2));
  await world.step();
  assert.equal(world.ledgersMade, 1);
});

test('a delivery whose lease was taken over is reported as lost', async () => {
  const world = new World();
  world.send(payload(1));
  world.send(payload(2));
  world.finalizeBatch = (payloads) => {
    const [first] = world.queue;
    if (first) world.queue[0] = { ...first, read_ct: first.read_ct + 1 };
    return payloads.map(() => 'committed');
  };
  assert.deepEqual((await world.step()).outcomes, { lost_lease: 1, committed: 1 });
  assert.equal(world.queue.length, 1);
});

test('every line about a delivery names its message, its pool and its claim', async () => {
  const world = new World();
  const bad = world.send(null);
  const good = world.send(payload(1));
  const lost = world.send(payload(2, { pool_id: 'nowhere' }));
  await world.step();
  const lines = world.log.filter((line) => line.message === 'delivery');
  assert.deepEqual(
    lines
      .map(({ level, msg_id, pool_id, claim_id, outcome }) => [level, msg_id, pool_id, claim_id, outcome])
      .sort((one, other) => Number(one[1]) - Number(other[1])),
    [
      ['debug', good, 'pool', uuid(1), 'committed'],
      ['warn', bad, null, null, 'dead_letter'],
      ['warn', lost, 'nowhere', uuid(2), 'dead_letter'],
    ],
  );
});
