// A line over a time. Times at which a database did not answer are shaded, never drawn as zero; where nothing was sampled, there is
// no line. What happened meanwhile is a thin line from top to bottom.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Mark } from '../../db1/supabase/functions/_shared/console/marks.ts';
import { axis, clock, dayAndClock } from '../lib/format.ts';
import { lineOf } from '../lib/line.ts';
import { useStore } from '../lib/store.ts';
import { zone } from '../lib/zone.ts';

const HEIGHT_PX = 132;
/** Below this the line of a quiet system would look like a storm. */
const LEAST_TOP = 5;
const HEADROOM = 1.2;
/** An outage of a minute is seen in a month, too. */
const LEAST_SHADE_PX = 3;
const DAY_SEC = 86_400;

export type Tint = 'water' | 'stone' | 'alarm';

/** What several charts of one time share. */
export interface Frame {
  readonly from: number;
  readonly to: number;
  readonly stepSec: number;
  readonly marks: readonly Mark[];
}

interface ChartProps<Item extends { readonly at: string }> {
  label: string;
  frame: Frame;
  points: readonly Item[];
  read(point: Item): number | null;
  /** The database that the value comes from. */
  source: 'db1' | 'db2';
  tint: Tint;
}

/** What is drawn now. */
interface Drawn extends Omit<Frame, 'marks'> {
  readonly data: [number[], (number | null)[]];
  readonly outages: readonly Mark[];
  readonly others: readonly Mark[];
}

const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const isOf = (source: 'db1' | 'db2', subject: string): boolean => (subject === 'DB2') === (source === 'db2');

function drawnOf<Item extends { readonly at: string }>(props: ChartProps<Item>): Drawn {
  const { frame, points, read, source } = props;
  const isOutage = ({ kind, subject }: Mark): boolean => kind === 'outage' && isOf(source, subject);
  return {
    from: frame.from,
    to: frame.to,
    stepSec: frame.stepSec,
    data: lineOf(points, read, frame.stepSec),
    outages: frame.marks.filter(isOutage),
    others: frame.marks.filter(({ kind }) => kind !== 'outage'),
  };
}

const KIND_COLOURS: Readonly<Record<string, string>> = {
  failover: '--alarm',
  alert: '--alarm',
  breaker: '--warn',
  restart: '--warn',
  deploy: '--good',
  start: '--good',
  action: '--stone',
};

function drawMarks(plot: uPlot, { outages, others, to }: Drawn): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const x = (moment: string): number =>
    Math.max(bbox.left, plot.valToPos(Date.parse(moment) / 1_000, 'x', true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour('--outage');
  for (const { began_at, ended_at } of outages) {
    const left = x(began_at);
    const right = ended_at === null ? plot.valToPos(to, 'x', true) : x(ended_at);
    ctx.fillRect(left, bbox.top, Math.max(LEAST_SHADE_PX * ratio, right - left), bbox.height);
    ctx.fillRect(left, bbox.top, Math.max(LEAST_SHADE_PX * ratio, right - left), 3 * ratio);
  }
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.lineWidth = Math.round(ratio);
  for (const { kind, began_at } of others) {
    ctx.strokeStyle = colour(KIND_COLOURS[kind] ?? '--muted');
    // In the middle of a pixel: a line between two of them is blurred.
    const middle = Math.round(x(began_at)) + (Math.round(ratio) % 2) / 2;
    ctx.beginPath();
    ctx.moveTo(middle, bbox.top);
    ctx.lineTo(middle, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Seconds only where two labels would be the same without them, days where they matter. */
function timeLabel(at: number, stepSec: number, { from, to }: Drawn): string {
  return to - from > DAY_SEC ? dayAndClock(at * 1_000) : clock(at * 1_000, stepSec < 60);
}

function optionsOf(width: number, tint: Tint, latest: () => Drawn): uPlot.Options {
  const lines = { stroke: colour('--line'), width: 1 };
  const texts = { stroke: colour('--muted'), font: '11px system-ui, sans-serif', ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    padding: [6, 20, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: 'charts' }, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: { time: true, range: () => [latest().from, latest().to] },
      y: { range: (_, __, max) => [0, Math.max(LEAST_TOP, (max ?? 0) * HEADROOM)] },
    },
    axes: [
      {
        ...texts,
        grid: { show: false },
        size: 22,
        space: () => (latest().to - latest().from > DAY_SEC ? 90 : 70),
        values: (_, splits, __, ___, step) => splits.map((at) => timeLabel(at, step, latest())),
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
    hooks: { drawClear: [(plot) => drawMarks(plot, latest())] },
  };
}

export function Chart<Item extends { readonly at: string }>(props: ChartProps<Item>) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const drawn = drawnOf(props);
  const latest = useRef(drawn);
  latest.current = drawn;

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        optionsOf(element.clientWidth, props.tint, () => latest.current),
        latest.current.data,
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

  useEffect(() => plot.current?.setData(latest.current.data), [props.points, props.frame]);
  // The labels of the axis are times.
  const shown = useStore(zone);
  useEffect(() => void (shown && plot.current?.redraw(false, true)), [shown]);

  return <div ref={place} class="chart" role="img" aria-label={labelOf(props.label, drawn)} />;
}

/** What is shaded is said, too. */
function labelOf(label: string, { outages }: Drawn): string {
  if (outages.length === 0) return label;
  return `${label}, ${outages.length === 1 ? 'one outage' : `${outages.length} outages`}`;
}
