// A history of provider events: two payments and a shop, some commands, and an end at which all that can must take effect.

import fc from 'fast-check';
import type { Bench } from '../engine.ts';
import type { Lane } from '../lanes.ts';
import { ensure, ensureSame } from '../violation.ts';
import { deliver, type Scene } from './commands/deliver.ts';
import { changeMood, replay, skip } from './commands/operator.ts';
import {
  claimNext,
  crash,
  extend,
  finish,
  letTimePass,
  markResult,
  process,
  processNow,
  processSome,
  take,
  takeOneSuspect,
  takeSome,
  takeSuspect,
  timePasses,
} from './commands/work.ts';
import { Model, type Template } from './model.ts';
import { noticesOf, stateOf, summaryOf } from './payments.ts';
import { type State, World } from './world.ts';

const PAYMENTS = 2;
const SHOP_EVENTS = 4;
const COMMANDS_MAX = 80;
const DRAIN_BATCH = 100;
/** Suspects come one at a time, so it takes as many rounds as there are events, and one that finds nothing. */
const DRAIN_ROUNDS_MAX = 40;
const LAST_WORKER = 'w3';

function templatesOf(run: string): Template[] {
  const shop = Array.from({ length: SHOP_EVENTS }, (_, at) => ({
    name: `s${at + 1}`,
    eventId: `evt_${run}_s${at + 1}`,
    payment: null,
    notice: null,
  }));
  const payments = Array.from({ length: PAYMENTS }, (_, at) => {
    const payment = `pi_${run}_${at + 1}`;
    return noticesOf(payment, `user_${run}_${at + 1}`).map((notice, number) => {
      const name = `p${at + 1}:${notice.type.replace('payment_', '')}@${notice.second}`;
      return { name, eventId: `evt_${run}_${at + 1}_${number + 1}`, payment, notice };
    });
  });
  return [...shop, ...payments.flat()];
}

export function openEvents(lane: Lane): Bench {
  const world = new World(lane);
  const scene: { templates: Template[] } & Scene = { templates: [] };
  const arrive = deliver(scene);
  const commands = [
    ...[arrive, arrive, arrive, arrive, take, take, takeSuspect, process, process, process, finish, finish],
    ...[timePasses, timePasses, timePasses, crash, extend, claimNext, markResult, processNow],
    ...[replay, replay, skip, changeMood],
  ];
  return {
    record: () => world.history,
    property: (watch) =>
      fc.asyncProperty(fc.commands(commands, { size: 'max', maxCommands: COMMANDS_MAX }), (history) =>
        watch(async () => {
          await world.reset();
          scene.templates = templatesOf(world.run);
          const model = new Model();
          await fc.asyncModelRun(() => ({ model, real: world }), history);
          const { length } = world.history;
          await end(model, world);
          await world.settle();
          return length;
        }),
      ),
  };
}

/** Faults stop: every lease and every wait runs out, and a sound worker carries on until nothing can be done. */
async function end(model: Model, world: World): Promise<void> {
  world.doing('the end: compare model and database');
  compareStates(model, await world.look());
  world.doing('faults stop');
  model.leases = [];
  model.mood = 'well';
  await world.setMood('well');
  for (let round = 0; ; round++) {
    ensure(round < DRAIN_ROUNDS_MAX, 'I10', () => `events are left after ${round} rounds`);
    const open = model.events.filter((event) => !model.hasEnded(event));
    if (open.length === 0) break;
    await letTimePass(model, world, open);
    const leases = await takeSome(model, world, LAST_WORKER, DRAIN_BATCH);
    leases.push(...(await takeOneSuspect(model, world, LAST_WORKER)));
    if (leases.length > 0) await processSome(model, world, LAST_WORKER, leases);
  }
  compareStates(model, await world.look());
}

function compareStates(model: Model, state: State): void {
  ensureSame(
    'I9',
    state.events.map(
      ({ eventId, status, attempts, takeovers, isLeased, isDue }) =>
        `${eventId} ${status} ${attempts} ${takeovers} ${isLeased} ${isDue}`,
    ),
    model.events.map(
      ({ eventId, status, attempts, takeovers, token, dueSince }) =>
        `${eventId} ${status} ${attempts} ${takeovers} ${token !== null} ${dueSince !== null}`,
    ),
  );
  const shop = model.events.filter(({ notice }) => notice === null);
  for (const { eventId, name, effects } of shop) {
    const taken = state.events.find((event) => event.eventId === eventId)?.effects;
    ensure(
      taken === effects && effects <= 1,
      'I7',
      () => `${name} took effect ${taken} times, not ${effects}`,
    );
  }
  const payments = [...new Set(model.events.flatMap(({ payment }) => payment ?? []))];
  ensureSame(
    'I7',
    state.payments.map(({ payment, state: is, refunded }) => `${payment} ${is} ${refunded}`),
    payments.flatMap((payment) => {
      const taken = model.takenOf(payment);
      return taken.length === 0 ? [] : [`${payment} ${stateOf(taken)} ${summaryOf(taken).refunded}`];
    }),
  );
  for (const payment of payments) {
    const facts = summaryOf(model.takenOf(payment)).balance;
    const sum = state.credits
      .filter((credit) => credit.payment === payment)
      .reduce((total, { amount }) => total + amount, 0);
    ensure(sum === facts, 'I8', () => `the credits of ${payment} are ${sum}, the facts ${facts}`);
  }
  ensure(state.alarms === model.alarms.size, 'I7', () => `${state.alarms} alarms, not ${model.alarms.size}`);
  ensureSame('I11', state.audit, model.audit);
}
