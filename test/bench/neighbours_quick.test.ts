import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ALL } from '../../bench/neighbours/all.ts';
import { rowOf } from '../../bench/neighbours/measure.ts';
import { demandsOf } from '../../bench/neighbours.ts';
import { bench } from './support.ts';

/** The numbers in which the healthy one is measured; a quick run proves nothing about them, but they are there. */
const NUMBERS = ['quiet_p50_ms', 'quiet_p99_ms', 'p50_ms', 'p99_ms', 'requests', 'hostile_sent'] as const;

test('a quick neighbours run has a row for every neighbour, each of which sent something', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'neighbours.json');
  const { status, stdout, stderr } = bench('neighbours', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows, settings } = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) assert.equal(settings[name], 'on');
  assert.deepEqual(
    rows.map((row: { name: string; version: string }) => [row.name, row.version]),
    ALL.map(({ name }) => [name, 'this']),
  );
  for (const row of rows) {
    for (const key of NUMBERS) assert.ok(row[key] > 0, `${row.name} ${key}`);
    assert.ok(row.failures >= 0 && row.failures <= row.requests, row.name);
    assert.match(stdout, new RegExp(`^${row.name} `, 'm'));
  }
});

const NEIGHBOUR = { name: 'noisy', finding: 'N0', healthy: 'claims' } as const;
const report = (ms: number, failures: Record<string, number> = {}) => ({
  tookMs: Array.from({ length: 100 }, () => ms),
  failures,
});
const row = (quietMs: number, ms: number, failures = {}, load = 1) =>
  rowOf({ name: 'this' }, NEIGHBOUR, load, 1, report(quietMs), report(ms, failures));

test('a row keeps the promise up to three times quiet or 250 ms, whichever is more, and with no failure', () => {
  assert.equal(row(10, 250).verdict, 'ok');
  assert.equal(row(10, 251).verdict, 'NOT MET');
  assert.equal(row(100, 300).verdict, 'ok');
  assert.equal(row(100, 301).verdict, 'NOT MET');
  const failed = row(10, 10, { 'status 503': 2, ECONNRESET: 1 });
  assert.deepEqual(
    [failed.verdict, failed.failures, failed.failed_with],
    ['NOT MET', 3, '2 status 503, 1 ECONNRESET'],
  );
});

test('a neighbour is judged at the load at which it did worst, and other versions are not judged', () => {
  const other = { ...row(10, 5_000), version: 'c84b80e' };
  const [demand, ...more] = demandsOf([row(10, 125), row(10, 500, {}, 2), other]);
  assert.equal(demand?.value, 0.5);
  assert.deepEqual(more, []);
});

test('only a suite that can compare takes another checkout', () => {
  const { status, stderr } = bench('calls', '--quick', '--against', 'elsewhere');
  assert.equal(status, 2);
  assert.match(stderr, /--against: calls measures this checkout only/);
});
