import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { demandFor } from '../../bench/processes.ts';
import { bench } from './support.ts';

test('a quick processes run measures an idle product with one and with two processes', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'processes.json');
  const { status, stdout, stderr } = bench('processes', '--quick', '--json', file);
  assert.equal(status, 0, stderr);
  const { rows } = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(
    rows.map((row: { processes: number }) => row.processes),
    [1, 2],
  );
  for (const row of rows) assert.ok(row.all >= 0, `${row.name} has ${row.all}`);
  assert.match(stdout, /what two processes take more than one while idle, median of 1 rounds/);
});

test('what two processes take more than one is met below a hundredth of a core, and not above', () => {
  const idle = (server: number) => ({ server, worker: 10, db1: 5, db2: 5 });
  assert.equal(demandFor([[idle(10), idle(15)]]).value, 2);
  assert.equal(demandFor([[idle(10), idle(30)]]).value, 0.5);
  assert.ok((demandFor([[idle(10), idle(9)]]).value ?? 0) > 1);
});
