import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demands, tableOf } from '../../bench/bridge/rows.ts';
import { Stopwatch } from '../../bench/stopwatch.ts';
import type { Row } from '../../bench/suite.ts';
import { assertCpu, runQuick } from './support.ts';

const ROW_NAMES = [
  ...['baseline', 'bridge', 'graphile-worker', 'graphile-worker-batch', 'graphile-worker-batch-claims'],
  ...['pg-boss', 'pg-boss-batch', 'pg-boss-batch-claims'],
];

function rowOf(name: string, rate: number, ends_claims = 0): Row {
  return { name, rate, clients: 1, batch: 1, p50_ms: 1, p99_ms: 1, wal_bytes_per_op: 1, ends_claims };
}

test('a quick bridge run writes every row with positive numbers, and durability was on', (t) => {
  const { rows } = runQuick(t, 'bridge');
  assertCpu(rows);
  assert.deepEqual([...new Set(rows.map((row) => row.name))].sort(), [...ROW_NAMES].sort());
  for (const row of rows) {
    for (const key of ['wal_bytes_per_op', 'dead_tuples_per_op'])
      assert.ok(Number(row[key]) > 0, `${row.name} ${key}`);
    assert.ok(row.settings, row.name);
  }
  const messages = rows.filter((row) => row.name !== 'baseline').map((row) => row.messages);
  assert.equal(new Set(messages).size, 1, 'all but the baseline carry the same number of messages');
});

test('the bridge at its best is held against each of the others at its best', () => {
  const rows = [
    ...[rowOf('baseline', 10, 1), rowOf('bridge', 100, 1), rowOf('bridge', 300, 1)],
    ...[rowOf('graphile-worker', 100), rowOf('graphile-worker', 150), rowOf('pg-boss', 600)],
    ...[rowOf('pg-boss-batch-claims', 150, 1), rowOf('graphile-worker-batch-claims', 200, 1)],
  ];
  assert.deepEqual(
    demands(rows).map(({ atLeast, value }) => ({ atLeast, value })),
    [
      { atLeast: 25, value: 30 },
      { atLeast: 1, value: 2 },
      { atLeast: 1, value: 0.5 },
      { atLeast: 1.5, value: 1.5 },
    ],
  );
});

test('a row that leaves claims and slots as they are is not the equal work, however fast it is', () => {
  const value = (ends: number) =>
    demands([rowOf('bridge', 300, 1), rowOf('baseline', 10, 1), rowOf('pg-boss-batch', 600, ends)]).at(-1)
      ?.value;
  assert.equal(value(0), 30);
  assert.equal(value(1), 0.5);
});

test('the table and the demands of a part of the rows leave out what was not measured', () => {
  const rows = [rowOf('bridge', 300, 1)];
  assert.deepEqual(
    demands(rows).map(({ value }) => value),
    Array(4).fill(undefined),
  );
  assert.doesNotMatch(
    tableOf(rows.map((row) => ({ ...row, settings: 'x', dead_tuples_per_op: 1, repetitions: 1 }))),
    /NaN|Infinity/,
  );
});

test('a look at an empty queue counts neither as a batch nor as time', async () => {
  const watch = new Stopwatch();
  await watch.time(async () => 7);
  const { seconds } = watch.read();
  await watch.time(async () => 0);
  assert.equal(watch.carried, 7);
  assert.deepEqual(watch.read(), { seconds, tookMs: watch.read().tookMs });
  assert.equal(watch.read().tookMs.length, 1);
});
