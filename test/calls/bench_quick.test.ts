import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Row } from '../../bench/suite.ts';
import { PROJECT } from '../support/dev.ts';

test('a quick run of the calls suite writes every row with positive numbers, and durability was on', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'calls.json');
  const args = ['--import', 'tsx', 'bench/run.ts', 'calls', '--quick', '--json', file];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: PROJECT, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const { suite, rows, settings } = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(suite, 'calls');
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes'])
    assert.equal(settings[name], 'on', name);
  assert.deepEqual([...new Set(rows.map((row: Row) => row.name))], ['single', 'coalesced']);
  for (const row of rows as Row[]) {
    for (const key of ['clients', 'rate', 'p50_ms', 'p99_ms', 'wal_bytes_per_op'] as const)
      assert.ok(row[key] > 0, `${row.name} ${key}`);
    assert.equal(row.refused, 0, row.name);
  }
});
