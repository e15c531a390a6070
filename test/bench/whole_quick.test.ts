import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { demandsOf, halfOf, rowOf, type WholeRow } from '../../bench/whole.ts';
import { bench, hasTools } from './support.ts';

/** A second of wrk on a busy machine may see no answer: what a window shows is not asked for. */
const NUMBERS = [
  ...['rate', 'claims', 'ticket_p50_ms', 'ticket_p99_ms', 'cpu_us', 'load_cpu_us', 'wal_bytes', 'bloat_mb'],
] as const;

test('a quick whole run has a row for each way and load, with all its numbers', async (t) => {
  if (!(await hasTools(t))) return;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'whole.json');
  const { status, stderr } = bench('whole', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows, settings } = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'])
    assert.equal(settings[name], 'on');
  assert.deepEqual(
    rows.map((row: WholeRow) => [row.name, row.way]),
    [
      ...['large-4', 'small-4'].flatMap((name) => ['sluice', 'plain', 'redis'].map((way) => [name, way])),
      ['half', 'sluice'],
    ],
  );
  for (const row of rows)
    for (const key of NUMBERS) assert.ok(row[key] > 0, `${row.way} ${key}: ${row[key]}`);
});

const LOAD = {
  name: 'large',
  clients: 64,
  slots: 1,
  refill: false,
  windows: 3,
  windowSec: 60,
  followedPerSec: 1,
};
const row = (way: string, rate: number, name = 'large'): WholeRow =>
  rowOf({ ...LOAD, name }, way, {
    ...{ claims: rate * 100, refused: 0, seconds: 90, drainedSeconds: 100, tickets: rate * 100 },
    ...{ claimP50Ms: 1, claimP99Ms: 2, ticketP50Ms: 3, ticketP99Ms: 500, loadUs: 1, walBytes: 1 },
    partsUs: { server: 30 * rate * 100, worker: 10 * rate * 100 },
    bloat: { bytes: 2 ** 20, deadRows: 0 },
    windows: [
      { claims: 10, refused: 0, seconds: 1, cpuUs: 100 },
      { claims: 10, refused: 0, seconds: 1, cpuUs: 220 },
    ],
  });

test('a rate counts until the last ticket, not until the last claim, and a part has its CPU for a claim', () => {
  const { rate, cpu_us, parts } = row('sluice', 50);
  assert.deepEqual([rate, cpu_us, parts], [50, 40, 'server 30 worker 10']);
});

test('each design is judged at the row where it does best against ours', () => {
  const rows = [row('sluice', 60), row('plain', 5), row('redis', 60), row('sluice', 60, 'small')];
  rows.push(row('plain', 30, 'small'), row('redis', 30, 'small'), row('sluice', 30, 'half'));
  const values = demandsOf(rows).map(({ value }) => value);
  assert.deepEqual(values, [2, 1, 0.5, 0.5]);
});

test('half load is half of what was possible, shared by the connections', () => {
  assert.equal(halfOf(LOAD, 6_400).delayMs, 20);
});
