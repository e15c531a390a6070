// One command of a history, as fast-check wants it. Which claim or message it is about is a number: what it stands for
// is looked up when the command runs, so that a history stays meaningful while fast-check takes commands out of it.

import type { AsyncCommand } from 'fast-check';

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

/** Those that are worth a closer look, if there are any: what is rare would else be met too seldom. */
export function preferred<Item>(items: readonly Item[], isRare: (item: Item) => boolean): readonly Item[] {
  const rare = items.filter(isRare);
  return rare.length > 0 ? rare : items;
}

export const namesOf = (items: readonly { name: string }[]): string =>
  items.length === 0 ? 'nothing' : items.map(({ name }) => name).join(' ');
