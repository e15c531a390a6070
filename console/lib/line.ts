// The line of a chart: where it goes, and where it ends because nothing was sampled.

export type At = { readonly at: string };

export const secondsOf = ({ at }: At): number => Date.parse(at) / 1_000;

/** A time without samples that is longer than so many steps: no server was running. */
const HOLE_STEPS = 4;
const LEAST_HOLE_SEC = 12;

/** Whether nothing was sampled before this point. */
export const isAfterHole = (before: At | undefined, point: At, stepSec: number): boolean =>
  before !== undefined &&
  secondsOf(point) - secondsOf(before) > Math.max(LEAST_HOLE_SEC, HOLE_STEPS * stepSec);

/** Times and values to draw. A hole has a null in its middle, where the line ends. */
export function lineOf<Item extends At>(
  points: readonly Item[],
  read: (point: Item) => number | null,
  stepSec: number,
): [number[], (number | null)[]] {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const [index, point] of points.entries()) {
    const before = points[index - 1];
    if (before !== undefined && isAfterHole(before, point, stepSec)) {
      times.push((secondsOf(before) + secondsOf(point)) / 2);
      values.push(null);
    }
    times.push(secondsOf(point));
    values.push(read(point));
  }
  return [times, values];
}
