import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Row } from '../../bench/suite.ts';
import { findTools } from '../../bench/tools.ts';
import { demands } from '../../bench/webhooks/rows.ts';
import { StackError } from '../../src/stack/failure.ts';
import { PROJECT } from '../support/dev.ts';

const ROW_NAMES = ['single', 'coalesced', 'process', 'graphile-worker'];

test('a quick webhooks run writes every row with positive numbers, and durability was on', async (t) => {
  try {
    await findTools();
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    t.skip(`${error.message}; ${error.hint}`);
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'webhooks.json');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'bench/run.ts', 'webhooks', '--quick', '--json', file],
    { cwd: PROJECT, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);

  const result = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(result.suite, 'webhooks');
  for (const key of ['commit', 'command', 'machine', 'settings']) assert.ok(result[key], key);
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes'])
    assert.equal(result.settings[name], 'on', name);

  const rows: Row[] = result.rows;
  assert.deepEqual([...new Set(rows.map((row) => row.name))], ROW_NAMES);
  for (const row of rows) {
    for (const key of ['clients', 'batch', 'rate', 'p50_ms', 'p99_ms', 'wal_bytes_per_op'])
      assert.ok(Number(row[key]) > 0, `${row.name} ${key}`);
    assert.equal(row.refused, 0, `${row.name} had requests refused or dropped`);
  }
  assert.deepEqual(
    rows.filter(({ name }) => name === 'single').map((row) => row.db_connections),
    [1, 10],
  );
  for (const name of ROW_NAMES) assert.match(stdout, new RegExp(`^${name} `, 'm'));
  assert.match(stdout, /^must show/m);
});

test('the coalesced door is held against one insert each, and our worker at its best against the other', () => {
  const row = (name: string, rate: number, connections?: number): Row => ({
    ...{ name, rate, clients: 64, batch: 1, p50_ms: 1, p99_ms: 1, wal_bytes_per_op: 1 },
    ...(connections !== undefined && { db_connections: connections }),
  });
  const rows = [
    ...[row('single', 100, 1), row('single', 300, 10), row('coalesced', 900, 1)],
    ...[row('process', 50), row('process', 80), row('graphile-worker', 40), row('graphile-worker', 20)],
  ];
  assert.deepEqual(
    demands(rows).map(({ atLeast, value }) => ({ atLeast, value })),
    [
      { atLeast: 4, value: 9 },
      { atLeast: 2, value: 3 },
      { atLeast: 1, value: 2 },
    ],
  );
});
