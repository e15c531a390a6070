import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bench } from './support.ts';

test('a quick limits run has all its rows and numbers, and stays below 64 MB', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'limits.json');
  const { status, stdout, stderr } = bench('limits', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows } = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(
    rows.map((row: { name: string }) => row.name),
    ['ipv4', 'ipv6', 'one address'],
  );
  for (const row of rows)
    for (const key of ['addresses', 'bytes', 'ns_per_admit']) assert.ok(row[key] > 0, `${row.name} ${key}`);
  assert.match(stdout, /^ {2}ok +64 MB in the bytes of all limits/m);
});
