// A message whose attempts are used up: what became of it, only the ledger knows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseError, payload, poolConfig, World } from './support.ts';

const SPENT = { attempts: 9 };

test('what the ledger has is committed, what another has is a conflict, the rest are dead letters', async () => {
  const world = new World();
  const ids = [1, 2, 3].map((n) => world.send(payload(n), SPENT));
  const fresh = world.send(payload(4));
  world.ticketOf = ({ user_id }) =>
    (({ 'user 1': 'already', 'user 2': 'conflict' }) as const)[String(user_id) as 'user 1'];
  assert.deepEqual((await world.step()).outcomes, { committed: 2, dead_letter: 2 });
  assert.deepEqual(
    [...ids, fresh].map((id) => [world.endOf(id)?.verdict, world.endOf(id)?.reason]),
    [
      ['committed', null],
      ['dead_letter', 'ticket_conflict'],
      ['dead_letter', 'max_retries'],
      ['committed', null],
    ],
  );
  assert.deepEqual(world.asked, [[payload(1), payload(2), payload(3)]], 'asked about once, all together');
  assert.deepEqual(world.ledgerCalls, [[payload(4)]], 'and not tried again');
});

test('the ledger is not asked about a claim that has attempts left', async () => {
  const world = new World();
  world.send(payload(1));
  await world.step();
  assert.deepEqual(world.asked, []);
});

for (const code of ['ECONNREFUSED', '08006', '57014', '42883', 'XX000']) {
  test(`while the ledger cannot be asked (${code}) no claim becomes a dead letter; the bridge asks again later`, async () => {
    const world = new World();
    const id = world.send(payload(1), SPENT);
    world.ticketOf = () => {
      throw databaseError(code);
    };
    for (let minute = 0; minute < 5; minute++) {
      const { outcomes, pausedUntilMs } = await world.step();
      assert.deepEqual(outcomes, { outage: 1 });
      assert.ok(pausedUntilMs > world.nowMs);
      world.nowMs += 60_000;
    }
    world.ticketOf = () => 'already';
    assert.deepEqual((await world.step()).outcomes, { committed: 1 });
    assert.equal(world.endOf(id)?.verdict, 'committed');
  });
}

test('while the ledger is left alone it is not asked either', async () => {
  const world = new World();
  world.pools.set('late', poolConfig('late'));
  world.send(payload(1));
  world.finalizeBatch = () => {
    throw databaseError('08006');
  };
  await world.step();
  world.send(payload(2, { pool_id: 'late' }), SPENT);
  assert.deepEqual((await world.step()).outcomes, {}, 'it waits in its lane');
  assert.deepEqual(world.asked, []);
});

test('for a pool that commits by hook no ledger is asked; for one with a function of its own it is', async () => {
  const world = new World();
  world.pools.set('hook', poolConfig('hook', { commit_webhook_url: 'https://hook.example/c' }));
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  const elsewhere = world.send(payload(1, { pool_id: 'hook' }), SPENT);
  const own = world.send(payload(2, { pool_id: 'own' }), SPENT);
  world.ticketOf = () => 'already';
  assert.deepEqual((await world.step()).outcomes, { committed: 1, dead_letter: 1 });
  assert.equal(world.endOf(elsewhere)?.reason, 'max_retries');
  assert.equal(world.endOf(own)?.verdict, 'committed');
  assert.deepEqual([world.posts, world.customCalls], [[], []]);
});

test('a worker that is told to stop hands back spent claims without asking', async () => {
  const world = new World();
  world.send(payload(1), SPENT);
  assert.deepEqual((await world.step(AbortSignal.abort())).outcomes, { untried: 1 });
  assert.deepEqual(world.asked, []);
});
