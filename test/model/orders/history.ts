// A history of paid orders: one pool with payment and one without, some commands, and an end at which faults stop and everything
// must drain.

import fc from 'fast-check';
import type { Bench } from '../engine.ts';
import type { Lane } from '../lanes.ts';
import { ensure } from '../violation.ts';
import {
  checkout,
  claim,
  claimAuto,
  conclude,
  pay,
  payAt,
  payByHand,
  payLater,
  release,
} from './commands/buyers.ts';
import { appeal, closeDispute, dispute } from './commands/disputes.ts';
import { decideRefund, discard, replay, voidClaims } from './commands/operator.ts';
import {
  arrive,
  deliver,
  deliverAt,
  failRefund,
  lose,
  misdeliver,
  refundOutside,
} from './commands/provider.ts';
import { bridge, closer, courier, ender, goOn, reconcile, refunder, tick } from './commands/workers.ts';
import { openDoor, PROCESSES, type ProcessName } from './processes.ts';
import { PAY_POOL, type Rules } from './rules.ts';
import { World } from './world.ts';

const COMMANDS_MAX = 70;
const SLOTS_MAX = 3;
/** Each round lets every process work until it finds nothing; a few rounds in a row without work are the end. */
const ROUNDS_MAX = 60;
const QUIET_ROUNDS = 3;
/** In all longer than any hold, grace, lease or pause of a worker: a slow payment is looked at after an hour at the latest. */
const DRAIN_TICK_SEC = 1_300;
/** No luck means that nothing is given up. */
const LUCKY = 9;

const rules: fc.Arbitrary<Rules> = fc.record({
  slots: fc.integer({ min: 1, max: SLOTS_MAX }),
  maxPerUser: fc.option(fc.constant(2), { freq: 1 }),
  graceSec: fc.constantFrom(60, 180),
  skewSec: fc.constantFrom(-45, 0, 45),
  bought: fc.constantFrom<Rules['bought'][]>('none', 'none', 'none', 'held', 'queued', 'carried', 'carried'),
  refundBy: fc.constantFrom<Rules['refundBy']>('sluice', 'sluice', 'operator'),
  toldBy: fc.constantFrom<Rules['toldBy']>('charge', 'refund'),
});

// What drives orders forward stands here more often than what happens once a week.
const COMMON = [
  ...[
    claim,
    claim,
    claim,
    checkout,
    checkout,
    checkout,
    pay,
    pay,
    pay,
    pay,
    deliver,
    deliver,
    deliver,
    deliver,
  ],
  ...[
    tick,
    tick,
    tick,
    tick,
    closer,
    closer,
    closer,
    courier,
    courier,
    courier,
    courier,
    bridge,
    bridge,
    bridge,
  ],
  ...[goOn, goOn, goOn, goOn, refunder, ender, claimAuto, lose, misdeliver, arrive],
  ...[
    payByHand,
    refundOutside,
    dispute,
    closeDispute,
    decideRefund,
    release,
    voidClaims,
    reconcile,
    conclude,
    payLater,
    replay,
    discard,
  ],
];
/** Each history leans towards something. */
const LEANINGS = [
  COMMON,
  [
    ...COMMON,
    voidClaims,
    voidClaims,
    refundOutside,
    refundOutside,
    reconcile,
    reconcile,
    courier,
    courier,
    bridge,
    bridge,
  ],
  [
    ...COMMON,
    refunder,
    refunder,
    refunder,
    refunder,
    refunder,
    voidClaims,
    voidClaims,
    voidClaims,
    courier,
    courier,
    lose,
  ],
  [...COMMON, tick, tick, tick, payLater, payLater, conclude, conclude, payByHand, payByHand],
  [
    ...COMMON,
    claimAuto,
    claimAuto,
    claimAuto,
    bridge,
    bridge,
    replay,
    replay,
    discard,
    discard,
    voidClaims,
    courier,
  ],
  // Money that goes away and comes back.
  [
    ...COMMON,
    ...[dispute, dispute, dispute, closeDispute, closeDispute, closeDispute, closeDispute, appeal, appeal],
    ...[refundOutside, refundOutside, refundOutside, failRefund, failRefund, failRefund, payByHand],
    ...[decideRefund, decideRefund, decideRefund, decideRefund, voidClaims, voidClaims, voidClaims],
    ...[deliver, deliver, deliver, deliver, deliver, courier, courier, refunder, refunder, refunder],
  ],
];

export function openOrders(lane: Lane): Bench {
  const world = new World(lane);
  return {
    record: () => world.history,
    property: (watch) =>
      fc.asyncProperty(
        rules,
        fc.oneof(...LEANINGS.map((list) => fc.commands(list, { size: 'max', maxCommands: COMMANDS_MAX }))),
        (given, commands) =>
          watch(async () => {
            try {
              await world.reset(given);
              await begin(world);
              await fc.asyncModelRun(() => ({ model: world, real: world }), commands);
              const { length } = world.history;
              await end(world);
              return length;
            } finally {
              world.leave();
            }
          }),
      ),
  };
}

/** Something is bought before anything goes wrong: else few histories come as far as a void. */
async function begin(world: World): Promise<void> {
  const { bought, slots } = world.rules;
  if (bought === 'none') return;
  world.doing('ann claims, before anything goes wrong');
  await world.claim(PAY_POOL, 'ann', slots > 1 ? 2 : 1);
  const [order] = world.state.intake.orders;
  ensure(order !== undefined, 'model', () => 'the first claim has no order');
  if (bought === 'held') return;
  await world.finish(await world.start('door', openDoor(world, order)));
  for (const session of world.stripe.sessions) await payAt(world, session, false);
  while (world.stripe.deliveries.length > 0) await deliverAt(world, 0, false);
  await exhaust(world, 'courier');
  if (bought === 'carried') await exhaust(world, 'bridge');
}

/** Until it finds nothing more to do. True where it found something. */
export async function exhaust(world: World, name: ProcessName): Promise<boolean> {
  for (let found = 0; ; found++) {
    ensure(found < ROUNDS_MAX, 'I10', () => `the ${name} finds something to do for ever`);
    const { length } = world.history;
    const result = await world.finish(await world.start(name, PROCESSES[name](world, LUCKY)));
    if (result === true) continue;
    // What finds nothing is not worth telling.
    world.history.length = length;
    return found > 0;
  }
}

/** Faults stop. Half of the processes that stalled are gone; the others finish what they had begun, however late. */
export async function end(world: World): Promise<void> {
  world.doing('faults stop');
  for (const [at, actor] of [...world.actors].entries()) if (at % 2 === 0) await world.finish(actor);
  world.leave();
  while (world.late.length > 0) await world.arrive(0);
  for (const payment of world.stripe.payments) world.stripe.conclude(payment, payment.id.length % 2 === 0);
  let quiet = 0;
  for (let round = 0; quiet < QUIET_ROUNDS; round++) {
    ensure(round < ROUNDS_MAX, 'I10', () => 'it does not come to rest');
    quiet = (await drain(world)) ? 0 : quiet + 1;
    if (quiet > 0) await world.advance(DRAIN_TICK_SEC);
    await world.expireHolds();
  }
  world.doing('the end: everything is at rest');
  await world.checkAtRest();
}

async function drain(world: World): Promise<boolean> {
  let isBusy = false;
  for (let at = world.stripe.deliveries.length - 1; at >= 0; at--) {
    const before = world.stripe.deliveries.length;
    await deliverAt(world, at, false);
    isBusy ||= world.stripe.deliveries.length < before;
  }
  for (const name of ['closer', 'courier', 'bridge', 'ender', 'refunder'] as const)
    isBusy = (await exhaust(world, name)) || isBusy;
  for (const { id } of world.state.intake.letters) {
    await world.operate(id % 2 === 0 ? 'replay' : 'discard', id);
    isBusy = true;
  }
  if (!isBusy) isBusy = (await exhaust(world, 'reconcile')) && false;
  return isBusy;
}
