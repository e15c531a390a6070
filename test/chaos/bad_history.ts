// A history that a checker must reject, made from the good one.

import type { History } from '../../chaos/history.ts';
import type { PromiseName } from '../../chaos/judge.ts';

/** `also`: the other promises that the same history breaks. */
export type BadHistory = {
  promise: PromiseName;
  name: string;
  also: PromiseName[];
  spoil(history: History): void;
};

export function bad(
  promise: PromiseName,
  name: string,
  also: PromiseName[],
  spoil: (history: History) => void,
): BadHistory {
  return { promise, name, also, spoil };
}

export function pick<Item>(items: Item[], at = 0): Item {
  const item = items[at];
  if (item === undefined) throw new Error(`the good history has no item ${at} here`);
  return item;
}
