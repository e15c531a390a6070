// Operators replay and skip; what the shop's handler needs goes away and comes back.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, step } from '../../step.ts';
import { ensure } from '../../violation.ts';
import type { Event, Model, Mood } from '../model.ts';
import type { World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;

const MOODS: Mood[] = ['well', 'well', 'failed', 'dead_letter', 'later', 'outage', 'again'];

const anyNumber = fc.nat(11);
const isDry = fc.integer({ min: 0, max: 9 }).map((number) => number === 9);

type Action = {
  name: 'replay' | 'skip';
  /** What the answer says when it was done, and `would_…` in a dry run. */
  done: 'replayed' | 'skipped';
  expected(model: Model, event: Event): string;
  apply(model: Model, event: Event): void;
};

const operate = ({ name, done, expected, apply }: Action): Command =>
  fc.tuple(anyNumber, isDry).map(([at, isDryRun]) =>
    step(
      `${name} ${at}`,
      (model) => model.events.length > 0,
      async (model, world) => {
        const event = pick(model.events, at);
        world.doing(`an operator ${isDryRun ? `tries to ${name}` : `${name}s`} ${event.name}`);
        const answer = await world.operate(name, event, isDryRun);
        const told = expected(model, event);
        const must = isDryRun && told === done ? `would_${name}` : told;
        ensure(answer === must, 'I7', () => `the ${name} answers ${answer}, not ${must}`);
        if (answer === done) {
          model.audit.push(`webhook_${name}`);
          apply(model, event);
        }
        world.got(answer);
      },
    ),
  );

export const replay = operate({
  name: 'replay',
  done: 'replayed',
  expected: (model, event) => model.replayAnswer(event),
  apply(model, event) {
    Object.assign(event, { status: 'pending', attempts: 0, takeovers: 0 });
    Object.assign(event, { isSkippedByOperator: false, hadTrouble: false, dueSince: model.tick() });
  },
});

export const skip = operate({
  name: 'skip',
  done: 'skipped',
  expected: (model, event) => model.skipAnswer(event),
  apply(_model, event) {
    Object.assign(event, { status: 'skipped', isSkippedByOperator: true, token: null, dueSince: null });
    Object.assign(event, { isLeaseOver: false });
  },
});

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
