// A refusal frees a slot. If an earlier worker may have carried the claim, the bridge asks the ledger first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseError, payload, poolConfig, World } from './support.ts';

const VALIDATE = 'https://hook.example/validate';
const COMMIT = 'https://hook.example/commit';
const AGAIN = { read_ct: 1 };

function refusing(rules = {}): World {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { validation_webhook_url: VALIDATE, ...rules }));
  world.answer = (url) => (url === VALIDATE ? 422 : 200);
  return world;
}

const endsOf = (world: World, ids: number[]) =>
  ids.map((id) => [world.endOf(id)?.verdict, world.endOf(id)?.reason]);

test('what was delivered before is refused only where the ledger has no ticket', async () => {
  const world = refusing();
  const ids = [1, 2, 3].map((n) => world.send(payload(n), AGAIN));
  const replayed = world.send(payload(4, { replayed_from: 7 }));
  world.ticketOf = ({ user_id }) =>
    (({ 'user 1': 'already', 'user 2': 'conflict', 'user 4': 'already' }) as const)[
      String(user_id) as 'user 1'
    ];
  await world.step();
  assert.deepEqual(endsOf(world, [...ids, replayed]), [
    ['committed', null],
    ['dead_letter', 'ticket_conflict'],
    ['refused', 'refused by validation: status 422'],
    ['committed', null],
  ]);
  assert.deepEqual(world.asked.flat(), [
    payload(1),
    payload(2),
    payload(3),
    payload(4, { replayed_from: 7 }),
  ]);
  assert.deepEqual(world.ledgerCalls, [], 'and nothing is committed that was refused');
});

test('a first delivery is refused without asking', async () => {
  const world = refusing();
  world.send(payload(1));
  assert.deepEqual((await world.step()).outcomes, { refused: 1 });
  assert.deepEqual(world.asked, []);
});

test('a pool that commits by hook needs no ledger to refuse', async () => {
  const world = refusing({ commit_webhook_url: COMMIT });
  world.send(payload(1), AGAIN);
  assert.deepEqual((await world.step()).outcomes, { refused: 1 });
  assert.equal(world.ledgersMade, 0);
});

test('while the ledger cannot be asked no claim is refused', async () => {
  const world = refusing();
  const id = world.send(payload(1), AGAIN);
  world.ticketOf = () => {
    throw databaseError('08006');
  };
  const { outcomes, pausedUntilMs } = await world.step();
  assert.deepEqual(outcomes, { outage: 1 });
  assert.ok(pausedUntilMs > world.nowMs);
  world.nowMs += 60_000;
  world.ticketOf = () => undefined;
  assert.deepEqual((await world.step()).outcomes, { refused: 1 });
  assert.equal(world.endOf(id)?.verdict, 'refused');
});

test('a worker that stops before it could ask hands back what it would have refused', async () => {
  const world = refusing();
  const id = world.send(payload(1), AGAIN);
  const stopping = new AbortController();
  world.answer = () => {
    stopping.abort();
    return 422;
  };
  await world.step(stopping.signal);
  assert.deepEqual(world.asked, []);
  assert.equal(world.endOf(id)?.verdict, 'untried');
});
