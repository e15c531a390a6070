import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertCpu, bench, hasTools, runQuick } from './support.ts';

const ROW_NAMES = [
  ...['baseline', 'baseline-indexed', 'single', 'single-request-id', 'batch', 'batch-request-id', 'floor'],
  ...['http', 'http-indexed', 'http-coalesced', 'http-stub', 'http-open', 'batch-insert'],
  ...['batch-small-pool', 'batch-large-pool'],
  ...['sold-out-baseline', 'sold-out-baseline-indexed', 'sold-out'],
];

test('a quick run writes every row with positive numbers, and durability was on', async (t) => {
  if (!(await hasTools(t))) return;
  const { rows } = runQuick(t, 'claims');
  assertCpu(rows);
  assert.deepEqual([...new Set(rows.map((row) => row.name))].sort(), [...ROW_NAMES].sort());
  for (const row of rows) assert.ok(row.wal_bytes_per_op >= 0, row.name);
});

test('an unknown suite is refused with the list of suites', () => {
  const { status, stderr } = bench('nonsense');
  assert.equal(status, 2);
  assert.match(stderr, /Unknown suite nonsense.*Suites: claims/);
});

test('--row runs the named rows alone, and the demands of the others are not measured', async (t) => {
  if (!(await hasTools(t))) return;
  const { rows, stdout } = runQuick(t, 'claims', '--row', 'batch-insert,floor');
  assert.deepEqual([...new Set(rows.map((row) => row.name))].sort(), ['batch-insert', 'floor']);
  assert.match(stdout, /^ {2}not measured batch 100 on 1 connection \/ inserting/m);
  assert.doesNotMatch(stdout, /NaN|Infinity/);
});

for (const [args, message] of [
  [['claims', '--row', 'flor'], /claims has no row flor\. Rows: baseline, /],
  [['whole', '--row', 'large-64', '--quick'], /whole has no row large-64 in a quick run\. Rows: small-4, /],
  [['whole', '--row', 'cpu'], /--row cpu: name the other checkout with --against/],
  [['limits', '--row', 'x'], /limits runs as a whole/],
  [['claims', '--keep', '--row', 'floor'], /would replace the numbers of the whole/],
  [['whole', '--keep', '--minutes', '5'], /a shortened row would stand for the whole of it/],
  [['claims', '--minutes', '5'], /--minutes: no row of claims/],
  [['whole', '--minutes', '1'], /--minutes: a whole number from 2 on/],
] as const)
  test(`${args.join(' ')} is refused, with the reason`, () => {
    const { status, stderr } = bench(...args);
    assert.equal(status, 2, stderr);
    assert.match(stderr, message);
  });

test('--help names the suites and the options', () => {
  const { status, stdout } = bench('--help');
  assert.equal(status, 0);
  for (const word of ['claims', '--json', '--keep', '--quick', '--row', '--minutes'])
    assert.ok(stdout.includes(word), word);
});
