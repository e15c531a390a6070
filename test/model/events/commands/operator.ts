// Operators replay and skip; what the shop's handler needs goes away and comes back.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, step } from '../../step.ts';
import { ensure } from '../../violation.ts';
import type { Model, Mood } from '../model.ts';
import type { World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const MOODS: Mood[] = ['well', 'well', 'failed', 'dead_letter', 'later', 'outage', 'again'];

const anyNumber = fc.nat(11);
const isDry = fc.integer({ min: 0, max: 9 }).map((number) => number === 9);

export const replay: Command = fc.tuple(anyNumber, isDry).map(([at, isDryRun]) =>
  step(
    `replay ${at}`,
    (model) => model.events.length > 0,
    async (model, world) => {
      const event = pick(model.events, at);
      world.doing(`an operator ${isDryRun ? 'tries to replay' : 'replays'} ${event.name}`);
      const answer = await world.operate('replay', event, isDryRun);
      const must = model.replayAnswer(event);
      const expected = isDryRun && must === 'replayed' ? 'would_replay' : must;
      ensure(answer === expected, 'I7', () => `the replay answers ${answer}, not ${expected}`);
      if (answer === 'replayed') {
        model.audit.push('webhook_replay');
        Object.assign(event, { status: 'pending', attempts: 0, takeovers: 0, hasTrouble: false });
        Object.assign(event, { isSkippedByOperator: false, dueSince: model.tick() });
      }
      world.got(answer);
    },
  ),
);

export const skip: Command = fc.tuple(anyNumber, isDry).map(([at, isDryRun]) =>
  step(
    `skip ${at}`,
    (model) => model.events.length > 0,
    async (model, world) => {
      const event = pick(model.events, at);
      world.doing(`an operator ${isDryRun ? 'tries to skip' : 'skips'} ${event.name}`);
      const answer = await world.operate('skip', event, isDryRun);
      const must = model.skipAnswer(event);
      const expected = isDryRun && must === 'skipped' ? 'would_skip' : must;
      ensure(answer === expected, 'I7', () => `the skip answers ${answer}, not ${expected}`);
      if (answer === 'skipped') {
        model.audit.push('webhook_skip');
        Object.assign(event, { status: 'skipped', isSkippedByOperator: true, token: null, dueSince: null });
        Object.assign(event, { isLeaseOver: false, hasTrouble: false });
      }
      world.got(answer);
    },
  ),
);

export const changeMood: Command = fc.constantFrom(...MOODS).map((mood) =>
  step(
    `the shop is ${mood}`,
    (model) => model.mood !== mood,
    async (model, world) => {
      world.doing(
        mood === 'well' ? 'the shop is well again' : `the shop's handler raises "${mood}" from now on`,
      );
      await world.setMood(mood);
      model.mood = mood;
    },
  ),
);
