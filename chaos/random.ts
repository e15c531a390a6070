// Random numbers from a seed: the same seed draws the same numbers everywhere, so that a run can be repeated.

export type Random = {
  /** From 0 up to, not including, 1. */
  next(): number;
  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  /** A copy in another order. */
  shuffled<Item>(items: readonly Item[]): Item[];
};

/** mulberry32. `label` gives each user of a seed its own row of numbers: drawing more there does not change the others. */
export function createRandom(seed: number, label = ''): Random {
  let state = seed >>> 0;
  for (const character of label) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x9e3779b1) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (low, high) => low + below(high - low + 1),
    chance: (probability) => next() < probability,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
    shuffled(items) {
      const copy = [...items];
      for (let at = copy.length - 1; at > 0; at--) {
        const other = below(at + 1);
        [copy[at], copy[other]] = [copy[other] as never, copy[at] as never];
      }
      return copy;
    },
  };
}
