// How many events of an SQL handler go into one set: as many as take about a second, by what its last sets took. A set is one
// transaction, so a larger one of slow events would hold its locks longer, and in the end outlast the statement timeout.

const SET_MS = 1_000;
/** Small, because nothing is known yet; a fast handler has a hundred after six sets. */
const FIRST_SIZE = 2;

/** The size of each lane's next set, at most `most`. What the last set took doubles it at most, and shrinks it as far as needed. */
export type SetSizes = ReturnType<typeof createSetSizes>;

export function createSetSizes(most: number) {
  const sizes = new Map<number, number>();
  const of = (lane: number): number => sizes.get(lane) ?? Math.min(FIRST_SIZE, most);
  const learn = (lane: number, events: number, tookMs: number): void => {
    const inOneSet = Math.floor((SET_MS * events) / Math.max(1, tookMs));
    sizes.set(lane, Math.max(1, Math.min(inOneSet, of(lane) * 2, most)));
  };
  return { of, learn };
}
