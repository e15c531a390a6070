import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { WholeRow } from '../../bench/whole/rows.ts';
import { bench, hasTools } from './support.ts';

/** A second of wrk on a busy machine may see no answer: what a window shows is not asked for. */
const NUMBERS = [
  'rate',
  'claims',
  'ticket_p50_ms',
  'ticket_p99_ms',
  'cpu_us',
  'load_cpu_us',
  'per_core',
] as const;
/** What consumers of the JSON find in every row. */
const SHAPE = [
  'clients',
  'rate',
  'claim_p99_ms',
  'ticket_p99_ms',
  'first_minute_rate',
  'last_minute_rate',
] as const;

test('a quick whole run has a row for each way and load, with all its numbers', async (t) => {
  if (!(await hasTools(t))) return;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'whole.json');
  const { status, stdout, stderr } = bench('whole', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const result = JSON.parse(readFileSync(file, 'utf8'));
  const rows: WholeRow[] = result.rows;
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'])
    assert.equal(result.settings[name], 'on');
  assert.deepEqual(
    rows.map((row) => [row.name, row.way]),
    [
      ...['sluice', 'claims-only', 'plain', 'redis'].map((way) => ['small-4', way]),
      ['half', 'sluice'],
      ...['sluice', 'plain'].map((way) => ['held', way]),
    ],
  );
  for (const row of rows) {
    for (const key of NUMBERS) assert.ok(Number(row[key]) > 0, `${row.name} ${row.way} ${key}: ${row[key]}`);
    for (const key of SHAPE) assert.equal(typeof row[key], 'number', `${row.name} ${row.way} ${key}`);
  }
  for (const row of rows.filter(({ name }) => name === 'held'))
    for (const key of [
      'first_minute_take_buffers',
      'last_minute_take_buffers',
      'last_minute_claim_buffers',
    ] as const)
      assert.ok(Number(row[key]) > 0, `${row.way} ${key}: ${row[key]}`);
  assert.match(stdout, /^ {2}redis: appendonly yes/m, 'the table says how the others were tuned');
  assert.match(stdout, /^ {2}not measured 0\.65 × CPU/m, 'without another checkout');
});
