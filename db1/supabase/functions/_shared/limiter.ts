// Some at a time: the rest waits for its turn. Those that wait have a key (an endpoint), and keys are served in turn, so that the crowd
// of one does not hold up another; of one key the first that came is the first that is served.

export interface Patience {
  readonly ms: number;
  /** What a work that has waited for so long is refused with. */
  late(): Error;
}

export class Limiter {
  readonly #patience: Patience | undefined;
  #free: number;
  /** The first key is served next. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(limit: number, patience?: Patience) {
    this.#free = limit;
    this.#patience = patience;
  }

  async run<Result>(work: () => Promise<Result>, key = ''): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(key);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #wait(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const patience = this.#patience;
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      const giveUp = (late: Error) => {
        this.#forget(key, begin);
        reject(late);
      };
      const timer = patience && setTimeout(() => giveUp(patience.late()), patience.ms);
      const others = this.#waiting.get(key);
      if (others === undefined) this.#waiting.set(key, [begin]);
      else others.push(begin);
    });
  }

  #forget(key: string, begin: () => void): void {
    const others = this.#waiting.get(key) ?? [];
    others.splice(others.indexOf(begin), 1);
    if (others.length === 0) this.#waiting.delete(key);
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#free++;
      return;
    }
    const [key, others] = first;
    const begin = others.shift();
    this.#waiting.delete(key);
    if (others.length > 0) this.#waiting.set(key, others);
    begin?.();
  }
}

/** The results in the order of the items, `most` of which are under way at a time. None begins after one has failed. */
export async function mapSome<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = new Array(items.length);
  const left = entriesOf(items);
  const oneByOne = async (): Promise<void> => {
    for (const [index, item] of left) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: most }, oneByOne));
  return results;
}

/** Unlike an array's own, this one is over for all who read it as soon as one of them breaks off. */
function* entriesOf<Item>(items: readonly Item[]): Generator<[number, Item]> {
  yield* items.entries();
}
