// What workers do, call by call: each is started by one command, and goes on, stalls, fails or dies by others.

import fc from 'fast-check';
import { pick, step } from '../../step.ts';
import { anyFate, type Body } from '../actors.ts';
import { PROCESSES, type ProcessName } from '../processes.ts';
import { anyNumber, type Command } from './buyers.ts';

/** Of all calls of a process that a command lets happen, before the one that goes wrong. */
const STEPS_MAX = 6;
const TICKS_SEC = [30, 60, 60, 120, 300, 1_200] as const;

/** A process begins and comes so far. */
const work = (name: ProcessName): Command =>
  fc.tuple(fc.nat(STEPS_MAX), anyFate, fc.integer({ min: 0, max: 9 })).map(([steps, fate, luck]) =>
    step(
      `${name} for ${steps} and ${fate}`,
      () => true,
      async (_, world) => {
        const body: Body = PROCESSES[name](world, luck);
        world.doing(`a ${name} begins`);
        await world.go(await world.start(`${name} ${world.history.length}`, body), steps, fate);
      },
    ),
  );

export const closer = work('closer');
export const courier = work('courier');
export const refunder = work('refunder');
export const bridge = work('bridge');
export const ender = work('ender');
export const reconcile = work('reconcile');

/** One that stalled goes on. */
export const goOn: Command = fc.tuple(anyNumber, fc.nat(STEPS_MAX), anyFate).map(([at, steps, fate]) =>
  step(
    `go on ${at} for ${steps} and ${fate}`,
    ({ actors }) => actors.length > 0,
    async (_, world) => {
      const actor = pick(world.actors, at);
      world.doing(`${actor.name} goes on`);
      await world.go(actor, steps, fate);
    },
  ),
);

export const tick: Command = fc
  .tuple(fc.constantFrom(...TICKS_SEC), fc.integer({ min: 0, max: 6 }))
  .map(([seconds, luck]) =>
    step(
      `${seconds} s pass`,
      () => true,
      async (_, world) => {
        world.doing(`${seconds} s pass`);
        await world.advance(seconds);
        if (luck > 0) world.got(`${await world.expireHolds()} holds end`);
      },
    ),
  );
