// Throughput through a fault, as an SVG that we write ourselves: no library, readable on light and dark pages.

import type { RunResult } from './result.ts';

/** Shown before the fault begins and after it is healed. */
const BEFORE_MS = 5_000;
const AFTER_MS = 10_000;
const SECOND_MS = 1_000;

const WIDTH = 760;
const HEIGHT = 300;
const MARGIN = { top: 44, right: 16, bottom: 40, left: 56 };
const INNER = {
  width: WIDTH - MARGIN.left - MARGIN.right,
  height: HEIGHT - MARGIN.top - MARGIN.bottom,
};
/** Faults that stop every claim: what one wants to see the way back from. Events and calls go on, and are counted too. */
const TELLING = ['kill-db1-postmaster', 'stop-db1-immediate'];

type Drawn = RunResult['faults'][number];
type Window = { from: number; to: number; fault: Drawn };

/** All that the picture shows of a run. */
export type Picture = Window & {
  seed: number;
  /** Those that are seen in it, the told one too. */
  faults: Drawn[];
  binMs: number;
  /** The first bin that is seen, and how many acknowledgements each one has. */
  firstBin: number;
  counts: number[];
};

/** How long a fault goes on within a window. */
const sharedMs = ({ from, to }: Window, fault: Drawn): number =>
  Math.max(0, Math.min(to, fault.healedAt) - Math.max(from, fault.startedAt));

const isSame = (one: Drawn, other: Drawn): boolean =>
  one.name === other.name && one.startedAt === other.startedAt;

/** How much of other faults one sees in it: what happens then is not this fault's doing alone. */
const clutterMs = (faults: readonly Drawn[], window: Window): number =>
  faults
    .filter((fault) => !isSame(fault, window.fault))
    .reduce((sum, fault) => sum + sharedMs(window, fault), 0);

/** The window around the telling fault that has the least of others in it; undefined: no such fault. */
export function pictureOf(run: RunResult): Picture | undefined {
  const [window] = tellingIn(run).sort(
    (one, other) => clutterMs(run.faults, one) - clutterMs(run.faults, other),
  );
  if (window === undefined) return undefined;
  const { binMs, counts } = run.throughput;
  const firstBin = Math.floor(window.from / binMs);
  return {
    ...window,
    seed: run.seed,
    faults: run.faults.filter((fault) => isSeen(window, fault)),
    binMs,
    firstBin,
    counts: counts.slice(firstBin, Math.ceil(window.to / binMs)),
  };
}

/** The one with less of other faults in it. */
export function clearer(one: Picture | null, other: Picture | null): Picture | null {
  if (one === null || other === null) return one ?? other;
  return clutterMs(other.faults, other) < clutterMs(one.faults, one) ? other : one;
}

function tellingIn(run: RunResult): Window[] {
  const last = run.throughput.counts.length * run.throughput.binMs;
  return run.faults
    .filter((fault) => TELLING.includes(fault.name))
    .map((fault) => ({
      from: Math.max(0, fault.startedAt - BEFORE_MS),
      to: Math.min(last, fault.healedAt + AFTER_MS),
      fault,
    }));
}

export function plot(picture: Picture): string {
  const { seed, fault, faults, from, to, binMs, firstBin, counts } = picture;
  const rates = counts
    .map((count, bin) => ({ at: (firstBin + bin + 0.5) * binMs, rate: (count * SECOND_MS) / binMs }))
    .filter(({ at }) => at >= from && at <= to);
  const top = niceTop(Math.max(1, ...rates.map(({ rate }) => rate)));
  const x = (at: number) => round(MARGIN.left + ((at - from) / (to - from)) * INNER.width);
  const y = (rate: number) => round(MARGIN.top + (1 - rate / top) * INNER.height);
  const zero = fault.startedAt;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="t d">`,
    `<title id="t">Acknowledgements per second through ${fault.name}</title>`,
    `<desc id="d">Seed ${seed}: what clients were told, claims, events and calls together; bands are faults.</desc>`,
    STYLE,
    text(
      MARGIN.left,
      20,
      `Acknowledgements per second, all kinds, seed ${seed}; 0 s: ${fault.name}`,
      'title',
    ),
    ...faults.map((seen, row) => band(seen, picture, x, row)),
    ...[0, 0.5, 1].flatMap((part) => [
      `<line class="grid" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(top * part)}" y2="${y(top * part)}"/>`,
      text(MARGIN.left - 8, y(top * part) + 4, String(top * part), 'end'),
    ]),
    ...ticks(from - zero, to - zero).map((at) =>
      text(x(at + zero), HEIGHT - MARGIN.bottom + 18, `${at / SECOND_MS} s`, 'middle'),
    ),
    `<polyline class="line" points="${rates.map(({ at, rate }) => `${x(at)},${y(rate)}`).join(' ')}"/>`,
    '</svg>',
    '',
  ].join('\n');
}

const isSeen = (window: Window, fault: Drawn): boolean =>
  fault.startedAt < window.to && fault.healedAt >= window.from;

const STYLE = `<style>
  text { font: 12px system-ui, sans-serif; fill: #333; }
  .title { font-size: 14px; font-weight: 600; }
  .middle { text-anchor: middle; } .end { text-anchor: end; }
  .grid { stroke: #8886; } .fault { fill: #d33; fill-opacity: 0.16; }
  .line { fill: none; stroke: #06c; stroke-width: 2; }
  @media (prefers-color-scheme: dark) { text { fill: #ddd; } .line { stroke: #6bf; } .fault { fill: #f66; fill-opacity: 0.26; } }
</style>`;

/** Names of faults that overlap stand below each other. */
function band(fault: Drawn, window: Window, x: (at: number) => number, row: number): string {
  const left = x(Math.max(fault.startedAt, window.from));
  const right = x(Math.min(fault.healedAt, window.to));
  const [lines, lineHeight] = [10, 14];
  const name = escaped(`${fault.name} ${fault.target}`);
  const isRight = left > MARGIN.left + INNER.width * 0.7;
  return [
    `<rect class="fault" x="${left}" y="${MARGIN.top}" width="${Math.max(2, round(right - left))}" height="${INNER.height}"/>`,
    text(
      isRight ? right : left,
      MARGIN.top + 12 + (row % lines) * lineHeight,
      name,
      isRight ? 'end' : 'name',
    ),
  ].join('\n');
}

function ticks(from: number, to: number): number[] {
  const step = 5 * SECOND_MS;
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, index) => first + index * step);
}

/** The next of 1, 2, 4, 6, 8 times a power of ten, so that half of it is a round number too. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 4, 6, 8, 10].find((factor) => factor * power >= value) ?? 10);
}

const text = (x: number, y: number, content: string, style: string): string =>
  `<text class="${style}" x="${x}" y="${y}">${content}</text>`;

const round = (value: number): number => Math.round(value * 10) / 10;

const escaped = (value: string): string =>
  value.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign] ?? sign);
