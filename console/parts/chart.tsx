// A line over the last five minutes. Times at which a database did not answer are shaded, never drawn as zero. The line has a
// gap where no console watched.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { axis, clock } from '../lib/format.ts';
import { isAfterHole, lineOf, secondsOf } from '../lib/history.ts';
import type { Point } from '../lib/live.ts';

/** At least a minute, so that a console that was just opened is not an empty sheet. */
const LEAST_WINDOW_SEC = 60;
const HEIGHT_PX = 132;
/** Below this the line of a quiet system would look like a storm. */
const LEAST_TOP = 5;
const HEADROOM = 1.2;

export type Tint = 'water' | 'stone' | 'alarm';

interface ChartProps {
  label: string;
  points: readonly Point[];
  read(point: Point): number | null;
  /** The database that the value comes from. */
  source: 'db1_ok' | 'db2_ok';
  tint: Tint;
}

const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Seconds only where two labels would be the same without them. */
const timeLabel = (at: number, stepSec: number): string => clock(at * 1_000, stepSec < 60);

function dataOf({ points, read }: ChartProps): uPlot.AlignedData {
  return lineOf(points, read);
}

function shadeOutages(plot: uPlot, { points, source }: ChartProps): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = colour('--outage');
  for (const [index, point] of points.entries()) {
    if (point[source]) continue;
    const before = points[index - 1];
    // Whether the database answered during a hole is unknown.
    const since = before === undefined || isAfterHole(before, point) ? point : before;
    const from = plot.valToPos(secondsOf(since), 'x', true);
    const to = plot.valToPos(secondsOf(point), 'x', true);
    const left = Math.max(from, bbox.left);
    ctx.fillRect(left, bbox.top, Math.max(1, to - left), bbox.height);
  }
  ctx.restore();
}

function optionsOf(width: number, latest: () => ChartProps): uPlot.Options {
  const { tint } = latest();
  const lines = { stroke: colour('--line'), width: 1 };
  const texts = { stroke: colour('--muted'), font: '11px system-ui, sans-serif', ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    padding: [6, 20, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: 'overview' }, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: {
        time: true,
        range: (_, min, max) => {
          const end = max ?? Date.now() / 1_000;
          return [Math.min(min ?? end, end - LEAST_WINDOW_SEC), end];
        },
      },
      y: { range: (_, __, max) => [0, Math.max(LEAST_TOP, (max ?? 0) * HEADROOM)] },
    },
    axes: [
      {
        ...texts,
        grid: { show: false },
        size: 22,
        space: 70,
        values: (_, splits, __, ___, step) => splits.map((at) => timeLabel(at, step)),
      },
      { ...texts, grid: lines, size: 44, space: 32, values: (_, splits) => splits.map(axis) },
    ],
    series: [
      {},
      {
        stroke: colour(`--${tint}`),
        fill: colour(`--${tint}-soft`),
        width: 2,
        points: { show: false },
        spanGaps: false,
      },
    ],
    hooks: { drawClear: [(plot) => shadeOutages(plot, latest())] },
  };
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        optionsOf(element.clientWidth, () => latest.current),
        dataOf(latest.current),
        element,
      );
    };
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const sizes = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    draw();
    scheme.addEventListener('change', draw);
    sizes.observe(element);
    return () => {
      scheme.removeEventListener('change', draw);
      sizes.disconnect();
      plot.current?.destroy();
    };
  }, []);

  useEffect(() => plot.current?.setData(dataOf(latest.current)), [props.points]);

  return <div ref={place} class="chart" role="img" aria-label={props.label} />;
}
