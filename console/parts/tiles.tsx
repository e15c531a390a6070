// Charts as tiles: a number, a word about it and its line.

import type { ComponentChildren } from 'preact';
import { Chart, type Frame, type Tint } from './chart.tsx';

export interface TileProps<Item extends { readonly at: string }> {
  title: string;
  frame: Frame;
  points: readonly Item[];
  read(point: Item): number | null;
  /** How the number is written. */
  show(value: number | null | undefined): string;
  /** The number; the last of the line where left out. */
  now?: number | null | undefined;
  source: 'db1' | 'db2';
  tint: Tint;
  /** How long the line is, for those who cannot see it. */
  span: string;
  /** A word about the number. */
  children?: ComponentChildren;
}

export function Tile<Item extends { readonly at: string }>(props: TileProps<Item>) {
  const { title, points, read, show, now, span, children, ...chart } = props;
  const last = points.at(-1);
  const value = show(now === undefined ? last && read(last) : now);
  return (
    <section class="tile">
      <h2>{title}</h2>
      <p class="tile-value">{value}</p>
      <p class="tile-about">{children ?? mostText(points, read, show)}</p>
      <Chart {...chart} label={`${title}: ${value}, ${span}`} points={points} read={read} />
    </section>
  );
}

function mostText<Item>(
  points: readonly Item[],
  read: (point: Item) => number | null,
  show: (value: number | null) => string,
): string {
  const values = points.map(read).filter((value) => value !== null);
  return values.length === 0 ? 'not known' : `at most ${show(values.reduce((a, b) => Math.max(a, b)))}`;
}
