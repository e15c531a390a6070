import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bench } from './support.ts';

test('a quick cells run has all its rows, fails no claim of the cell that is left, and loses none of the other', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'cells.json');
  const { status, stderr } = bench('cells', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows } = JSON.parse(readFileSync(file, 'utf8'));
  const [one, two, killed] = rows;
  assert.deepEqual(
    rows.map((row: { name: string }) => row.name),
    ['one cell', 'two cells', 'one cell killed'],
  );
  for (const row of [one, two]) assert.ok(row.cpu_us > 0 && row.rate > 0, row.name);
  assert.deepEqual([killed.failures, killed.lost], [0, 0]);
  assert.ok(killed.own_refused > 0, 'the control: claims of the killed cell are refused');
});
