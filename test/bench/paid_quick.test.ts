import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { claimDemands } from '../../bench/paid.ts';
import { bench } from './support.ts';

const NUMBERS: Record<string, string[]> = {
  auto: ['cpu_us', 'wal_bytes'],
  'auto-secret': ['cpu_us', 'wal_bytes'],
  held: ['cpu_us', 'wal_bytes'],
  settle: ['rate', 'ticket_rate'],
  flow: ['p50_ms', 'p99_ms'],
};

test('a quick paid run has all its rows and numbers', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'paid.json');
  const { status, stderr } = bench('paid', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows, settings } = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'])
    assert.equal(settings[name], 'on');
  assert.deepEqual(
    rows.map((row: { name: string }) => row.name),
    Object.keys(NUMBERS),
  );
  for (const row of rows)
    for (const key of NUMBERS[row.name] ?? []) assert.ok(row[key] > 0, `${row.name} ${key}: ${row[key]}`);
});

test('claims are judged round by round, against the other checkout where there is one', () => {
  const samples = (...cpu: number[]) => cpu.map((cpu_us) => ({ cpu_us, wal_bytes: 100 }));
  const held = { 'auto-secret': samples(100, 100, 300), held: samples(50, 80, 400) };
  const values = (taken: Record<string, ReturnType<typeof samples>>) =>
    claimDemands(new Map(Object.entries(taken))).map(({ value }) => value);
  assert.deepEqual(values({ auto: samples(100, 206, 400), 'auto old': samples(100, 200, 100), ...held }), [
    (1.03 * 200) / 206,
    1,
    1.25,
    1,
  ]);
  assert.deepEqual(values({ auto: samples(100), ...held }), [undefined, undefined, 1.25, 1]);
});
