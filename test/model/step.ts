// One command of a history, as fast-check wants it. Which claim or message it is about is a number: what it stands for
// is looked up when the command runs, so that a history stays meaningful while fast-check takes commands out of it.

import type { Arbitrary, AsyncCommand } from 'fast-check';

export function step<Model extends object, World>(
  name: string,
  check: (model: Model) => boolean,
  run: (model: Model, world: World) => Promise<void>,
): AsyncCommand<Model, World> {
  return { check, run, toString: () => name };
}

/** The item that a number stands for. The list must not be empty: `check` has seen to it. */
export function pick<Item>(items: readonly Item[], number: number): Item {
  const item = items[number % items.length];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
}

type Hands<Model, World, Item> = {
  of(model: Model, worker: string): Item[];
  names(items: readonly Item[]): string;
  forget(model: Model, items: readonly Item[]): void;
  /** Extends all and compares with those that are still held. */
  extend(world: World, all: Item[], held: Item[]): Promise<void>;
};

/** What workers of every kind do with what is in their hands: extend the leases, and crash. */
export function workerSteps<
  Item,
  Model extends { holds(item: Item): boolean },
  World extends { doing(what: string): void; got(answer: string): void },
>(anyWorker: Arbitrary<string>, hands: Hands<Model, World, Item>) {
  const busy = (
    what: (worker: string) => string,
    run: (all: Item[], model: Model, world: World, worker: string) => Promise<void>,
  ) =>
    anyWorker.map((worker) =>
      step<Model, World>(
        what(worker),
        (model) => hands.of(model, worker).length > 0,
        (model, world) => run(hands.of(model, worker), model, world, worker),
      ),
    );
  return {
    extend: busy(
      (worker) => `${worker} extends its leases`,
      async (all, model, world, worker) => {
        world.doing(`${worker} extends its leases`);
        const held = all.filter((item) => model.holds(item));
        await hands.extend(world, all, held);
        world.got(held.length === 0 ? 'none held' : hands.names(held));
      },
    ),
    /** With whatever it had told others, and without a word to the queue. */
    crash: busy(
      (worker) => `${worker} crashes`,
      async (all, model, world, worker) => {
        world.doing(`${worker} crashes with ${hands.names(all)}`);
        hands.forget(model, all);
      },
    ),
  };
}

/** Those that are worth a closer look, if there are any: what is rare would else be met too seldom. */
export function preferred<Item>(items: readonly Item[], isRare: (item: Item) => boolean): readonly Item[] {
  const rare = items.filter(isRare);
  return rare.length > 0 ? rare : items;
}

export const namesOf = (items: readonly { name: string }[]): string =>
  items.length === 0 ? 'nothing' : items.map(({ name }) => name).join(' ');
