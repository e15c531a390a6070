// Repetitions become rows, rows become a table.

import { median, type Sample } from '../stats.ts';
import type { Row } from '../suite.ts';
import type { Cell } from './plan.ts';

/** Which row each way is compared with in the table. */
const COMPARED_WITH: Record<string, string> = {
  'baseline-indexed': 'baseline',
  single: 'baseline',
  'single-request-id': 'baseline',
  batch: 'baseline',
  'batch-request-id': 'baseline',
  'batch-large-pool': 'batch-small-pool',
  'http-indexed': 'http',
  'http-coalesced': 'http',
  floor: 'baseline',
  'sold-out-baseline-indexed': 'sold-out-baseline',
  'sold-out': 'sold-out-baseline',
};

const HEADINGS = [
  'row',
  'clients',
  'batch',
  'slots',
  'per second',
  'spread',
  'p50 ms',
  'p99 ms',
  'WAL bytes',
  'first 1/10',
  'last 1/10',
  'sold',
  'ratio',
  'against',
];

export function makeRow(cell: Cell, samples: readonly Sample[]): Row {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))] as (keyof Sample)[];
  const medianOf = (name: keyof Sample): number =>
    median(samples.map((sample) => sample[name]).filter((value) => value !== undefined));
  const medians = Object.fromEntries(names.map((name) => [name, medianOf(name)])) as Required<Sample>;
  const rates = samples.map((sample) => sample.rate);
  return {
    ...medians,
    name: cell.name,
    clients: cell.clients,
    batch: cell.batch,
    slots: cell.slots,
    max_sec: cell.maxSec,
    repetitions: samples.length,
    rate_min: Math.min(...rates),
    rate_max: Math.max(...rates),
  };
}

/** Batches are compared with the baseline on one connection: that is what they replace. */
function otherRow(rows: readonly Row[], row: Row): Row | undefined {
  const name = COMPARED_WITH[row.name];
  const isBatch = row.name === 'batch' || row.name === 'batch-request-id';
  const batch = row.name === 'batch-large-pool' ? row.batch : 1;
  const clients = isBatch ? 1 : row.clients;
  return rows.find((one) => one.name === name && one.clients === clients && one.batch === batch);
}

export function makeTable(rows: readonly Row[]): string {
  const lines = [HEADINGS, ...rows.map((row) => cellsOf(row, otherRow(rows, row)))];
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const aligned = lines.map((line) => line.map((text, at) => align(text, at, widths[at] ?? 0)).join('  '));
  return [...aligned.map((line) => line.trimEnd()), ...rows.flatMap(warningOf)].join('\n');
}

/** A door that refused or dropped requests was not measured at what the row says. */
function warningOf({ name, clients, refused = 0, broken = 0 }: Row): string[] {
  if (refused === 0 && broken === 0) return [];
  return [
    `warning: ${name}, ${clients} connections: ${refused} requests refused, ${broken} without an answer`,
  ];
}

function align(text: string, column: number, width: number): string {
  const isText = column === 0 || column === HEADINGS.length - 1;
  return isText ? text.padEnd(width) : text.padStart(width);
}

function cellsOf(row: Row, other: Row | undefined): string[] {
  const spread = (Number(row.rate_max) - Number(row.rate_min)) / 2 / row.rate;
  return [
    row.name,
    String(row.clients),
    String(row.batch),
    Number(row.slots) === 0 ? '' : whole(row.slots),
    whole(row.rate),
    row.repetitions === 1 ? '' : `±${Math.round(spread * 100)} %`,
    row.p50_ms.toFixed(2),
    row.p99_ms.toFixed(2),
    whole(row.wal_bytes_per_op),
    whole(row.first_tenth_rate),
    whole(row.last_tenth_rate),
    row.sold_part === undefined ? '' : `${Math.round(Number(row.sold_part) * 100)} %`,
    other === undefined ? '' : (row.rate / other.rate).toFixed(2),
    other === undefined ? '' : `${other.name}, ${other.clients}`,
  ];
}

function whole(value: number | string | undefined): string {
  return value === undefined ? '' : Math.round(Number(value)).toLocaleString('en-US');
}
