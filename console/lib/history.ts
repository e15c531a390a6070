// The last minutes as they were watched. The server samples only while a console watches: other times are holes that no line
// crosses.

/** How far back the charts go. */
export const WINDOW_SEC = 300;
/** Samples come each second, and a slow database may cost one or two of them. */
const HOLE_SEC = 5;

type At = { readonly at: string };

export const secondsOf = ({ at }: At): number => Date.parse(at) / 1_000;

/** The points of the window, counted back from the newest. By time and not by number: 300 samples with a hole span more. */
export function recent<Point extends At>(points: readonly Point[]): readonly Point[] {
  const last = points.at(-1);
  if (last === undefined) return points;
  const since = secondsOf(last) - WINDOW_SEC;
  return points.filter((point) => secondsOf(point) >= since);
}

/** Whether no console watched just before this point. */
export const isAfterHole = (before: At | undefined, point: At): boolean =>
  before !== undefined && secondsOf(point) - secondsOf(before) > HOLE_SEC;

/** Times and values to draw. A hole has a null in its middle, where the line ends. */
export function lineOf<Point extends At>(
  points: readonly Point[],
  read: (point: Point) => number | null,
): [number[], (number | null)[]] {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const [index, point] of points.entries()) {
    const before = points[index - 1];
    if (before !== undefined && isAfterHole(before, point)) {
      times.push((secondsOf(before) + secondsOf(point)) / 2);
      values.push(null);
    }
    times.push(secondsOf(point));
    values.push(read(point));
  }
  return [times, values];
}
