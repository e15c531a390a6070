// Providers: the same event again, in any order, several in one delivery, and now and then a known id with another body.

import fc, { type Arbitrary, type AsyncCommand } from 'fast-check';
import { pick, step } from '../../step.ts';
import { ensure } from '../../violation.ts';
import type { Model, Template } from '../model.ts';
import type { World } from '../world.ts';

type Command = Arbitrary<AsyncCommand<Model, World>>;
export type Scene = { templates: readonly Template[] };

const DELIVERIES_MAX = 4;

const delivery = fc.record({
  at: fc.nat(31),
  isForged: fc.integer({ min: 0, max: 9 }).map((number) => number === 9),
});

export const deliver = (scene: Scene): Command =>
  fc.array(delivery, { minLength: 1, maxLength: DELIVERIES_MAX }).map((numbers) =>
    step(
      `deliver ${JSON.stringify(numbers)}`,
      () => true,
      async (model, world) => {
        const deliveries = numbers.map(({ at, isForged }) => ({
          template: pick(scene.templates, at),
          isForged,
        }));
        const names = deliveries.map(
          ({ template, isForged }) => `${template.name}${isForged ? ' (forged)' : ''}`,
        );
        world.doing(`deliver ${names.join(', ')}`);
        const answers = await world.deliver(deliveries);
        const dueSince = model.tick();
        for (const [at, { template, isForged }] of deliveries.entries()) {
          const answer = answers[at];
          const known = model.find(template);
          const expected = expectedOf(model, known, template, isForged);
          ensure(
            answer?.outcome === expected,
            'I7',
            () => `${template.name} is ${answer?.outcome}, not ${expected}`,
          );
          if (known === undefined) {
            // The first delivery with an id is believed; its signature was checked before.
            model.record({ ...template, isForged }, answer?.id ?? '', dueSince, model.tick());
          } else {
            ensure(answer?.status === known.status, 'I7', () => `${template.name} is ${answer?.status}`);
          }
        }
        world.got(answers.map(({ outcome }) => outcome).join(', '));
      },
    ),
  );

function expectedOf(
  model: Model,
  known: { isForged: boolean } | undefined,
  template: Template,
  isForged: boolean,
) {
  if (known === undefined) return 'recorded';
  if (known.isForged === isForged) return 'duplicate';
  model.alarms.add(`${template.eventId} ${isForged}`);
  return 'body_differs';
}
