// How long a process that died stays down before it is started again.

/** The pause before a restart: long enough for dead sessions to notice, short enough that people hardly do. */
const FIRST_PAUSE_MS = 500;
/** Each death in a row doubles the pause, up to this: what dies at once every time must not keep the machine busy. */
const LONGEST_PAUSE_MS = 30_000;
/** Having run for so long, the next death is the first again. */
export const CALM_MS = 60_000;

/** The pause before the restart after so many deaths in a row. */
export function pauseAfter(deaths: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (deaths - 1), LONGEST_PAUSE_MS);
}
