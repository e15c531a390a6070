// Group commit: while a call is under way, what comes waits, and then leaves together.

export class Gathering<Item> {
  readonly #flush: (items: readonly Item[]) => Promise<void>;
  #waiting: Item[] = [];
  #next: Promise<void> | undefined;
  #running: Promise<unknown> = Promise.resolve();

  /** What `flush` throws reaches all whose items were in it. */
  constructor(flush: (items: readonly Item[]) => Promise<void>) {
    this.#flush = flush;
  }

  /** Resolves when the flush that carries the item has ended. */
  add(item: Item): Promise<void> {
    this.#waiting.push(item);
    this.#next ??= this.#leave();
    return this.#next;
  }

  async #leave(): Promise<void> {
    await this.#running;
    const items = this.#waiting;
    this.#waiting = [];
    this.#next = undefined;
    const flushed = this.#flush(items);
    this.#running = flushed.catch(() => undefined);
    await flushed;
  }
}
