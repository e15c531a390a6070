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
  const killed = rows.at(-1);
  assert.deepEqual(
    rows.map((row: { name: string }) => row.name),
    ['one cell', 'two cells, as many buyers each', 'two cells, half the buyers each', 'one cell killed'],
  );
  for (const row of rows.slice(0, -1))
    assert.ok(row.cpu_us > 0 && row.rate > 0 && row.batch >= 1, JSON.stringify(row));
  assert.deepEqual([killed.failures, killed.lost], [0, 0]);
  assert.ok(killed.own_refused > 0, 'the control: claims of the killed cell are refused');
});

test('a quick quorum run has all its rows', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'quorum.json');
  const { status, stderr } = bench('quorum', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows } = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(
    rows.map((row: { name: string }) => row.name),
    ['claim local', 'claim quorum', 'same local', 'same quorum'],
  );
  for (const row of rows) assert.ok(row.rate > 0 && row.of_local > 0, JSON.stringify(row));
});
