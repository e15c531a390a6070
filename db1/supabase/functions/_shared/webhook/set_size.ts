// How many events of an SQL handler go into one set: as many as take about a second, by what its last sets took. A set is one
// transaction, so a larger one of slow events would hold its locks longer, and in the end outlast the statement timeout.

const SET_MS = 1_000;
/** Small, because nothing is known yet; a fast handler has a hundred after six sets. */
const FIRST_SIZE = 2;

export class SetSizes {
  readonly #most: number;
  readonly #sizes = new Map<number, number>();

  constructor(most: number) {
    this.#most = most;
  }

  of(lane: number): number {
    return this.#sizes.get(lane) ?? Math.min(FIRST_SIZE, this.#most);
  }

  /** A set of `events` took so long: doubles at most, and shrinks as far as it has to. */
  learn(lane: number, events: number, tookMs: number): void {
    const inOneSet = Math.floor((SET_MS * events) / Math.max(1, tookMs));
    this.#sizes.set(lane, Math.max(1, Math.min(inOneSet, this.of(lane) * 2, this.#most)));
  }
}
