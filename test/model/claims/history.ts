// A history of claims: two pools, some commands, and an end at which faults stop and everything must drain.

import fc from 'fast-check';
import type { Bench } from '../engine.ts';
import type { Lane } from '../lanes.ts';
import { ensure } from '../violation.ts';
import {
  ask,
  askLedger,
  crash,
  extend,
  finish,
  finishSome,
  leaseEnds,
  routeToDeadLetters,
  take,
  takeSome,
  takeSuspect,
  takeSuspects,
} from './commands/bridge.ts';
import { claimBatch, claimOne, release, retry } from './commands/claim.ts';
import {
  addSlots,
  closePool,
  compare,
  discard,
  expireHolds,
  finishHeard,
  holdRunsOut,
  lookAtPool,
  loseCache,
  openPool,
  orphan,
  reap,
  reapOrphans,
  reconcile,
  replay,
  sellAtLedger,
  tellIntake,
  tellLedger,
  tellOfEnds,
} from './commands/operator.ts';
import { Model, type PoolRules } from './model.ts';
import { checkPromises, compareStates } from './promises.ts';
import { World } from './world.ts';

const POOL_IDS = ['a', 'b'];
const SLOTS_MAX = 2;
const RETRIES_MAX = 3;
const COMMANDS_MAX = 80;
/** Each takes what is there; validation takes one more, and a last one must find nothing. */
const DRAIN_ROUNDS_MAX = 4;
const DRAIN_BATCH = 100;
const LAST_WORKER = 'w3';

const rules: fc.Arbitrary<PoolRules> = fc.record({
  slots: fc.integer({ min: 1, max: SLOTS_MAX }),
  maxPerUser: fc.option(fc.integer({ min: 1, max: 2 }), { freq: 2 }),
  hasHold: fc.boolean(),
  validates: fc.integer({ min: 0, max: 3 }).map((number) => number === 3),
  maxRetries: fc.integer({ min: 2, max: RETRIES_MAX }),
});

// What drives claims forward stands here more often than what happens once a week.
const COMMANDS = [
  ...[claimOne, claimOne, claimOne, claimBatch, claimBatch, retry, retry, release, release],
  ...[take, take, take, take, askLedger, askLedger, askLedger, finish, finish, finish, finish, finish],
  ...[takeSuspect, leaseEnds, leaseEnds, leaseEnds, crash, extend, routeToDeadLetters],
  ...[replay, replay, replay, discard, discard, reconcile, holdRunsOut, expireHolds],
  ...[tellLedger, tellLedger, tellIntake, tellIntake],
  ...[closePool, openPool, openPool, openPool, addSlots, lookAtPool, orphan, reap, loseCache, sellAtLedger],
];

export function openClaims(lane: Lane): Bench {
  const world = new World(lane);
  return {
    record: () => world.history,
    property: (watch) =>
      fc.asyncProperty(
        fc.tuple(rules, rules),
        fc.commands(COMMANDS, { size: 'max', maxCommands: COMMANDS_MAX }),
        (pools, commands) =>
          watch(async () => {
            const model = await begin(world, pools);
            await fc.asyncModelRun(() => ({ model, real: world }), commands);
            const { length } = world.history;
            await end(model, world);
            return length;
          }),
      ),
  };
}

async function begin(world: World, pools: readonly PoolRules[]): Promise<Model> {
  await world.reset();
  const model = new Model();
  for (const [at, rule] of pools.entries()) {
    const pool = { ...rule, id: POOL_IDS[at] ?? '', isOpen: true };
    model.pools.push(pool);
    await world.addPool(pool);
    const ids = await world.addSlots(pool, rule.slots);
    for (const [number, id] of ids.entries())
      model.slots.push({ id, name: `${pool.id}${number + 1}`, pool, isOrphan: false });
  }
  return model;
}

/** Faults stop: the workers of before are gone, every lease runs out, and a sound worker carries on. */
async function end(model: Model, world: World): Promise<void> {
  world.doing('the end: compare model and databases');
  const before = await world.look();
  model.isCacheLost = false;
  compareStates(model, before);
  world.doing('faults stop, leases run out');
  model.forget(model.deliveries);
  for (const message of model.messages) message.isVisible = true;
  if (model.claims.some(({ endAs }) => endAs !== null)) await tellOfEnds(model, world);
  if (model.heard.length > 0) await finishHeard(model, world);
  await world.leaseEnds(model.messages);
  for (let round = 0; model.messages.length > 0; round++) {
    ensure(round < DRAIN_ROUNDS_MAX, 'I10', () => `the queue is not empty after ${round} rounds`);
    await drain(model, world);
  }
  await reapOrphans(model, world);
  await compare(model, world, true);
  await compare(model, world, false);
  const after = await world.look();
  compareStates(model, after);
  checkPromises({
    ...after,
    told: world.told,
    released: world.released,
    failures: world.failures,
    actions: model.audit,
    pools: model.pools.map(({ id, maxRetries }) => ({
      id,
      maxRetries,
      capacity: model.slots.filter((slot) => slot.pool.id === id).length,
    })),
  });
}

/** One step of a bridge that nothing disturbs. */
async function drain(model: Model, world: World): Promise<void> {
  const common = await takeSome(model, world, LAST_WORKER, DRAIN_BATCH, null);
  const taken = [...common, ...(await takeSuspects(model, world, LAST_WORKER))];
  const fresh = taken.filter((delivery) => !delivery.isValidated && !model.isSpent(delivery));
  if (fresh.length > 0)
    await finishSome(
      model,
      world,
      LAST_WORKER,
      fresh.map((delivery) => ({ delivery, verdict: 'validated', reason: null, delayMs: 0 })),
    );
  if (taken.length === 0) return;
  await ask(model, world, LAST_WORKER, taken);
  await finishSome(
    model,
    world,
    LAST_WORKER,
    taken.map((delivery) => {
      if (delivery.answer === 'voided')
        return { delivery, verdict: 'gone', reason: 'the claim has ended', delayMs: 0 };
      const isDead = delivery.answer === 'conflict' || delivery.answer === 'none';
      const reason = delivery.answer === 'conflict' ? 'ticket_conflict' : 'max_retries';
      return isDead
        ? { delivery, verdict: 'dead_letter', reason, delayMs: 0 }
        : { delivery, verdict: 'committed', reason: null, delayMs: 0 };
    }),
  );
}
