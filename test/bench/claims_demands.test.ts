import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demands } from '../../bench/claims/must_show.ts';
import { tableOf } from '../../bench/claims/rows.ts';
import type { Row } from '../../bench/suite.ts';

function row(name: string, rate: number, more: Partial<Row> = {}): Row {
  return { name, rate, clients: 1, batch: 1, p50_ms: 1, p99_ms: 1, wal_bytes_per_op: 1, ...more } as Row;
}

const find = (rows: readonly Row[], words: RegExp) => demands(rows).filter(({ what }) => words.test(what));
const valuesOf = (rows: readonly Row[], words: RegExp) => find(rows, words).map(({ value }) => value);

test('a single claim is held against the plain design with its index forced, at each number of clients', () => {
  const at = (clients: number, single: number) => [
    row('single', single, { clients }),
    row('baseline-indexed', 100, { clients }),
    // The plan that the planner takes by itself is slower, and counts for nothing here.
    row('baseline', 10, { clients }),
  ];
  const rows = [...at(1, 90), ...at(8, 100), ...at(32, 110), ...at(128, 109)];
  const forced = find(rows, /^single \/ baseline with its index forced/);
  assert.deepEqual(
    forced.map(({ atLeast, value }) => [atLeast, value]),
    [
      [1, 0.9],
      [1, 1],
      [1.1, 1.1],
      [1.1, 1.09],
    ],
  );
  assert.deepEqual(valuesOf(at(8, 100), /^single \/ baseline with its index/), [
    undefined,
    1,
    undefined,
    undefined,
  ]);
});

test('batches of 100 on one connection are held against the inserts alone, of the same size and connection', () => {
  const batch = [
    row('batch', 80, { batch: 100 }),
    row('batch', 500, { batch: 1_000 }),
    row('batch', 160, { batch: 100, clients: 2 }),
  ];
  assert.deepEqual(
    valuesOf([...batch, row('batch-insert', 100, { batch: 100 })], /inserting claim rows/),
    [0.8],
  );
  assert.deepEqual(
    valuesOf([...batch, row('batch-insert', 200, { batch: 100 })], /inserting claim rows/),
    [0.4],
  );
  assert.deepEqual(valuesOf(batch, /inserting claim rows/), [undefined]);
});

test('the server is held against itself without its database call, at the same number of connections', () => {
  const rows = [
    ...[row('http-coalesced', 60, { clients: 64 }), row('http-stub', 100, { clients: 64 })],
    ...[row('http-coalesced', 30, { clients: 256 }), row('http-stub', 100, { clients: 256 })],
  ];
  assert.deepEqual(valuesOf(rows, /stubbed/), [0.6, 0.3]);
});

test('CPU over HTTP is met at four fifths of the other checkout, and missed above it', () => {
  const rows = (cpu_ratio: number) => [
    row('http-cpu', 1, { version: 'sluice', clients: 64 }),
    row('http-cpu', 1, { version: 'old', clients: 64, cpu_ratio }),
  ];
  const [met] = find(rows(1.25), /CPU of a claim over HTTP of old/);
  assert.deepEqual([met?.atLeast, met?.value], [1, 1]);
  assert.ok((valuesOf(rows(1.2), /CPU of a claim over HTTP/)[0] ?? 1) < 1);
  assert.deepEqual(valuesOf([], /CPU of a claim over HTTP/), [undefined]);
});

test('a fixed pace is met by its p99 only where nothing failed and the pace was kept', () => {
  const open = (more: Partial<Row>) =>
    valuesOf(
      [
        row('http-open', 600, {
          clients: 1_000,
          p99_ms: 25,
          offered_rate: 600,
          refused: 0,
          broken: 0,
          ...more,
        }),
      ],
      /60 % of the best rate/,
    );
  assert.deepEqual(open({}), [2]);
  assert.deepEqual(open({ p99_ms: 100 }), [0.5]);
  assert.deepEqual(open({ refused: 1 }), [0]);
  assert.deepEqual(open({ broken: 1 }), [0]);
  assert.deepEqual(open({ offered_rate: 700 }), [0]);
});

test('the table shows the rate for each core and the load generator’s share, and nothing where a run has none', () => {
  const cpu = { cpu_us: 75, load_cpu_us: 25, per_core: 1e6 / 75, repetitions: 1 };
  assert.match(tableOf([row('floor', 10, cpu)]), /^floor .* 75 +13,333 +25 %/m);
  assert.doesNotMatch(tableOf([row('floor', 10, { repetitions: 1 })]), /NaN|undefined|%|per core/);
});

test('the table says how the rows that it has were tuned', () => {
  const table = tableOf([row('http-indexed', 10, { repetitions: 1 })]);
  assert.match(table, /^ {2}http-indexed: the same with enable_seqscan off/m);
  assert.doesNotMatch(table, /baseline-indexed|http-stub/);
});
