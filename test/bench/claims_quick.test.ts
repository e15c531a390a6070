import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bench, hasTools, runQuick } from './support.ts';

const ROW_NAMES = [
  ...['baseline', 'baseline-indexed', 'single', 'single-request-id', 'batch', 'batch-request-id', 'floor'],
  ...['http', 'http-indexed', 'http-coalesced', 'batch-small-pool', 'batch-large-pool'],
  ...['sold-out-baseline', 'sold-out-baseline-indexed', 'sold-out'],
];

test('a quick run writes every row with positive numbers, and durability was on', async (t) => {
  if (!(await hasTools(t))) return;
  const { rows } = runQuick(t, 'claims');
  assert.deepEqual([...new Set(rows.map((row) => row.name))].sort(), [...ROW_NAMES].sort());
  for (const row of rows) assert.ok(row.wal_bytes_per_op >= 0, row.name);
});

test('an unknown suite is refused with the list of suites', () => {
  const { status, stderr } = bench('nonsense');
  assert.equal(status, 2);
  assert.match(stderr, /Unknown suite nonsense.*Suites: claims/);
});

test('--help names the suites and the options', () => {
  const { status, stdout } = bench('--help');
  assert.equal(status, 0);
  for (const word of ['claims', '--json', '--keep', '--quick']) assert.ok(stdout.includes(word), word);
});
