// A history that once ended badly: a slow worker writes its ticket after the claim was buried, replayed and released.
// The replayed message is new and no worker has taken it, so the release looked safe, and the claim ended twice.

import assert from 'node:assert/strict';
import { ask, finishSome, takeSome } from './claims/commands/bridge.ts';
import { Model, type Pool } from './claims/model.ts';
import { World } from './claims/world.ts';
import type { Lane } from './lanes.ts';

const POOL: Pool = {
  id: 'a',
  isOpen: true,
  slots: 1,
  maxPerUser: null,
  hasHold: false,
  validates: false,
  maxRetries: 10,
};

/** Answers what the buyer was told about the release. */
export async function playLateTicket(lane: Lane): Promise<string> {
  const world = new World(lane);
  const model = new Model();
  await world.reset();
  model.pools.push(POOL);
  await world.addPool(POOL);
  const [id = ''] = await world.addSlots(POOL, 1);
  const slot = { id, name: 'a1', pool: POOL, isOrphan: false };
  model.slots.push(slot);

  await world.claimOne({ pool: POOL, user: 'u1', request: null });
  const [ids] = await world.idsOf([id]);
  assert(ids);
  const claim = model.claim(slot, 'u1', null, ids);
  const slow = await takeSome(model, world, 'w1', 1, null);
  await world.leaseEnds(model.messages);
  for (const message of model.messages) message.isVisible = true;
  const [delivery] = await takeSome(model, world, 'w2', 1, null);
  assert(delivery);
  await finishSome(model, world, 'w2', [
    { delivery, verdict: 'dead_letter', reason: '22023: planted', delayMs: 0 },
  ]);
  const letters = model.letters.map((letter) => letter.id);
  assert.deepEqual([...(await world.operate('replay', letters, false)).values()], ['replayed']);

  const released = await world.release(claim, 'u1');
  await ask(model, world, 'w1', slow);
  const { tickets } = await world.look();
  assert.equal(tickets.length, 1, 'the slow worker has written its ticket');
  return released;
}
