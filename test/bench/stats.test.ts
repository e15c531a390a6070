import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLog } from '../../bench/pgbench.ts';
import { median, medianRange, quantile, summarise } from '../../bench/stats.ts';

const SECOND_US = 1e6;

/** One client that finishes a statement every `everyUs`. */
function steady(count: number, everyUs: number, client = 0, fromUs = 0) {
  return Array.from({ length: count }, (_, at) => ({
    client,
    endUs: fromUs + (at + 1) * everyUs,
    tookUs: everyUs,
  }));
}

test('a line of the pgbench log gives client, end and duration', () => {
  assert.deepEqual(readLog('3 17 2500 0 1700000000 42\n'), [
    { client: 3, endUs: 1_700_000_000 * SECOND_US + 42, tookUs: 2500 },
  ]);
});

test('a line that is not from a pgbench log is refused', () => {
  assert.throws(() => readLog('3 17 skipped\n'), /not a line/);
});

test('a steady client has its own rate, times the batch, in every tenth', () => {
  const { rate, p50_ms, first_tenth_rate, last_tenth_rate } = summarise(steady(1005, 1000), 100);
  assert.equal(Math.round(rate), 100_000);
  assert.equal(p50_ms, 1);
  assert.equal(Math.round(first_tenth_rate ?? 0), 100_000);
  assert.equal(Math.round(last_tenth_rate ?? 0), 100_000);
});

test('the first five statements of a connection are not counted', () => {
  const slowStart = steady(5, SECOND_US);
  const { rate, ops } = summarise([...slowStart, ...steady(100, 1000, 0, 5 * SECOND_US)], 1);
  assert.equal(ops, 100);
  assert.equal(Math.round(rate), 1000);
});

test('a run that was mostly warm-up is counted whole', () => {
  const { ops, rate } = summarise(steady(6, 1000), 1);
  assert.equal(ops, 6);
  assert.equal(Math.round(rate), 1000);
});

test('a run that slows down shows it in its tenths', () => {
  const { first_tenth_rate = 0, last_tenth_rate = 0 } = summarise(
    [...steady(505, 1000), ...steady(500, 4000, 0, 505_000)],
    1,
  );
  assert.equal(Math.round(first_tenth_rate / last_tenth_rate), 4);
});

test('an empty run is an error, not a rate of zero', () => {
  assert.throws(() => summarise([], 1), /not one statement/);
});

test('medians of odd and even counts, quantiles within the values', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(quantile([1, 2, 3, 4], 0.99), 4);
});

test('the range of a median is by rank: of 41 values the 14th to the 28th, of few all of them', () => {
  const upTo = (count: number) => Array.from({ length: count }, (_, at) => count - at);
  assert.deepEqual(medianRange(upTo(41)), [14, 28]);
  assert.deepEqual(medianRange(upTo(3)), [1, 3]);
});
