// Repetitions become rows, rows become a table.

import { loadShare } from './cpu.ts';
import { median } from './stats.ts';
import type { Row } from './suite.ts';

export type Column<Of = Row> = { heading: string; isText?: boolean; text(row: Of): string };

const PERCENT = 100;

/** Goes round all cells (A B C, A B C, …), so that a slow minute of the machine hits all alike. */
export async function runRounds<Cell, Sample>(
  cells: readonly Cell[],
  repetitions: number,
  measure: (cell: Cell, round: number) => Promise<Sample>,
): Promise<(readonly [Cell, Sample[]])[]> {
  const taken = cells.map((cell) => [cell, [] as Sample[]] as const);
  for (let round = 1; round <= repetitions; round++)
    for (const [cell, samples] of taken) samples.push(await measure(cell, round));
  return taken;
}

type Medians<Sample> = { [Name in keyof Sample]-?: number } & Record<
  'repetitions' | 'rate_min' | 'rate_max',
  number
>;

/** The median of each number that the samples have, and how far the rates lie apart. */
export function mediansOf<Sample extends { rate: number }>(samples: readonly Sample[]): Medians<Sample> {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))] as (keyof Sample)[];
  const medians = names.map((name) => {
    const values = samples.map((sample) => sample[name]).filter((value) => typeof value === 'number');
    return [name, median(values)];
  });
  const rates = samples.map(({ rate }) => rate);
  return {
    ...Object.fromEntries(medians),
    repetitions: samples.length,
    rate_min: Math.min(...rates),
    rate_max: Math.max(...rates),
  };
}

export function sumOf<Sample>(samples: readonly Sample[], amount: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + amount(sample), 0);
}

/** The rate of a way with its best number of clients and batch; undefined where it was not measured. */
export function bestRate(rows: readonly Row[], name: string): number | undefined {
  const rates = rows.filter((row) => row.name === name).map((row) => row.rate);
  return rates.length === 0 ? undefined : Math.max(...rates);
}

export function whole(value: number | string | undefined): string {
  return value === undefined ? '' : Math.round(Number(value)).toLocaleString('en-US');
}

export const column = (heading: string, name: string): Column => ({
  heading,
  text: (row) => whole(row[name]),
});

export const NAME: Column = { heading: 'row', isText: true, text: (row) => row.name };

/** Rate and latency stand in every table. */
export const SPEED: readonly Column[] = [
  column('per second', 'rate'),
  { heading: 'spread', text: spread },
  { heading: 'p50 ms', text: (row) => row.p50_ms.toFixed(2) },
  { heading: 'p99 ms', text: (row) => row.p99_ms.toFixed(2) },
];

/** Beside a rate: what it took of the machine, and how much of that was the load generator's. Older summaries lack it. */
export function cpuColumns(rows: readonly Row[]): readonly Column[] {
  return rows.some(({ cpu_us }) => cpu_us !== undefined) ? CPU : [];
}

const CPU: readonly Column[] = [
  column('CPU µs', 'cpu_us'),
  { heading: 'per core', text: ({ per_core }) => (Number(per_core) > 0 ? whole(per_core) : '') },
  { heading: 'load', text: loadText },
];

export function loadText({ cpu_us, load_cpu_us }: { [name: string]: number | string | undefined }): string {
  if (cpu_us === undefined || load_cpu_us === undefined) return '';
  const share = loadShare({ cpu_us: Number(cpu_us), load_cpu_us: Number(load_cpu_us) });
  return `${Math.round(share * PERCENT)} %`;
}

function spread(row: Row): string {
  if (row.repetitions === 1) return '';
  return `±${Math.round(((Number(row.rate_max) - Number(row.rate_min)) / 2 / row.rate) * PERCENT)} %`;
}

/** What the other designs were given to do their best, for the person who reads the ratios: by the rows that it is about. */
export type Tuned = readonly (readonly [names: readonly string[], what: string])[];

/** Lines for below a table, of the rows that it has. */
export function tunedLines(tuned: Tuned, rows: readonly Row[]): string[] {
  const lines = tuned.flatMap(([names, what]) => {
    const shown = names.filter((name) => rows.some((row) => row.name === name));
    return shown.length === 0 ? [] : [`  ${shown.join(', ')}: ${what}`];
  });
  return lines.length === 0 ? [] : ['', 'tuned', ...lines];
}

export function makeTable<Of = Row>(columns: readonly Column<Of>[], rows: readonly Of[]): string {
  const lines = [
    columns.map(({ heading }) => heading),
    ...rows.map((row) => columns.map(({ text }) => text(row))),
  ];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((text, at) =>
          columns[at]?.isText ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
