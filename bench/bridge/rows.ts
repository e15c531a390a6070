// Repetitions become rows, rows become a table.

import { median } from '../stats.ts';
import type { Row } from '../suite.ts';
import type { DrainSample } from './measure.ts';
import type { Cell } from './plan.ts';

type Rates = { baseline: number; bridge: number };
type Column = { heading: string; text(row: Row, best: Rates): string };

const COLUMNS: Column[] = [
  { heading: 'row', text: (row) => row.name },
  { heading: 'at once', text: (row) => whole(row.clients) },
  { heading: 'batch', text: (row) => whole(row.batch) },
  { heading: 'messages', text: (row) => whole(row.messages) },
  { heading: 'per second', text: (row) => whole(row.rate) },
  { heading: 'spread', text: spread },
  { heading: 'p50 ms', text: (row) => row.p50_ms.toFixed(2) },
  { heading: 'p99 ms', text: (row) => row.p99_ms.toFixed(2) },
  { heading: 'WAL DB1', text: (row) => whole(row.db1_wal_bytes_per_op) },
  { heading: 'WAL DB2', text: (row) => whole(row.db2_wal_bytes_per_op) },
  { heading: 'dead rows', text: (row) => Number(row.dead_tuples_per_op).toFixed(2) },
  { heading: '/ baseline', text: (row, best) => (row.rate / best.baseline).toFixed(1) },
  { heading: 'bridge / it', text: (row, best) => (best.bridge / row.rate).toFixed(1) },
];

export function makeRow(cell: Cell, samples: readonly DrainSample[]): Row {
  const medianOf = (name: keyof DrainSample): number => median(samples.map((sample) => sample[name]));
  const rates = samples.map((sample) => sample.rate);
  return {
    name: cell.name,
    clients: cell.clients,
    batch: cell.batch,
    messages: cell.messages,
    repetitions: samples.length,
    seconds: medianOf('seconds'),
    rate: medianOf('rate'),
    rate_min: Math.min(...rates),
    rate_max: Math.max(...rates),
    p50_ms: medianOf('p50_ms'),
    p99_ms: medianOf('p99_ms'),
    wal_bytes_per_op: medianOf('wal_bytes_per_op'),
    db1_wal_bytes_per_op: medianOf('db1_wal_bytes_per_op'),
    db2_wal_bytes_per_op: medianOf('db2_wal_bytes_per_op'),
    dead_tuples_per_op: medianOf('dead_tuples_per_op'),
    settings: cell.way.settings(cell),
  };
}

/** The rate of a way with its best number of loops and batch. */
export function bestRate(rows: readonly Row[], name: string): number {
  return Math.max(...rows.filter((row) => row.name === name).map((row) => row.rate));
}

export function makeTable(rows: readonly Row[]): string {
  const best = { baseline: bestRate(rows, 'baseline'), bridge: bestRate(rows, 'bridge') };
  const lines = [
    COLUMNS.map(({ heading }) => heading),
    ...rows.map((row) => COLUMNS.map(({ text }) => text(row, best))),
  ];
  const widths = COLUMNS.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const aligned = lines.map((line) =>
    line
      .map((text, at) => (at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return [...aligned, '', 'settings', ...new Set(rows.map(settingsLine))].join('\n');
}

function settingsLine(row: Row): string {
  return `  ${row.name}, ${row.clients}: ${row.settings}`;
}

function spread(row: Row): string {
  if (row.repetitions === 1) return '';
  return `±${Math.round(((Number(row.rate_max) - Number(row.rate_min)) / 2 / row.rate) * 100)} %`;
}

function whole(value: number | string | undefined): string {
  return Math.round(Number(value)).toLocaleString('en-US');
}
