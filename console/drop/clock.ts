// The server's clock, as well as it can be known here. The person's own may be minutes off.

/** How many of the last tellings count: long enough for one that came fast, short enough to follow a clock that was set. */
const KEPT = 20;
/** The header Date has whole seconds: on average it is half a second behind. */
const HALF_SECOND_MS = 500;

export class ServerClock {
  readonly #local: () => number;
  #offsets: number[] = [];
  #roughOffset = 0;

  /** `local` is a clock that cannot be set; see `monotonic`. */
  constructor(local: () => number) {
    this.#local = local;
  }

  /** The server said what time it was when it sent this. */
  told(serverMs: number): void {
    this.#offsets = [...this.#offsets, serverMs - this.#local()].slice(-KEPT);
  }

  /** From a Date header, which is better than nothing. */
  toldRoughly(serverMs: number): void {
    this.#roughOffset = serverMs + HALF_SECOND_MS - this.#local();
  }

  now(): number {
    // Each telling arrives late by its way here, so the largest is the one that had the shortest way.
    const offset = this.#offsets.length > 0 ? Math.max(...this.#offsets) : this.#roughOffset;
    return this.#local() + offset;
  }
}

/** Counts on when the person, or the network, sets the clock. */
export const monotonic = (): number => performance.timeOrigin + performance.now();
