// The command of the bench, and a quick run of one suite.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Row } from '../../bench/suite.ts';
import { findTools } from '../../bench/tools.ts';
import { StackError } from '../../src/failure.ts';
import { PROJECT } from '../support/dev.ts';

export function bench(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', 'bench/run.ts', ...args], {
    cwd: PROJECT,
    encoding: 'utf8',
  });
}

/** False, with the reason, where the load generators are missing and may not be installed. */
export async function hasTools(t: TestContext): Promise<boolean> {
  try {
    await findTools();
    return true;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    t.skip(`${error.message}; ${error.hint}`);
    return false;
  }
}

/** Durability was on, and every row has positive numbers; which rows there are is for the caller to check. */
export function runQuick(t: TestContext, suite: string, ...more: string[]): { rows: Row[]; stdout: string } {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, `${suite}.json`);
  const { status, stdout, stderr } = bench(suite, '--quick', '--json', file, ...more);
  assert.equal(status, 0, stderr);
  const result = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(result.suite, suite);
  assert.ok(!Number.isNaN(Date.parse(result.at)));
  for (const key of ['commit', 'command', 'machine', 'product_hash']) assert.ok(result[key], key);
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'])
    assert.equal(result.settings[name], 'on', name);
  const rows: Row[] = result.rows;
  assert.ok(rows.length > 0);
  for (const row of rows) {
    for (const key of ['clients', 'batch', 'rate', 'p50_ms', 'p99_ms'] as const)
      assert.ok(row[key] > 0, `${row.name} ${key}`);
    assert.ok(!row.refused && !row.broken, `${row.name} had requests refused or dropped`);
    assert.match(stdout, new RegExp(`^${row.name} `, 'm'));
  }
  assert.match(stdout, /^must show/m);
  return { rows, stdout };
}

/** What each row took of the machine, and what its load generator did. */
export function assertCpu(rows: readonly Row[]): void {
  for (const row of rows) {
    for (const key of ['cpu_us', 'per_core']) assert.ok(Number(row[key]) > 0, `${row.name} ${key}`);
    assert.ok(Number(row.load_cpu_us) >= 0, `${row.name} load_cpu_us`);
  }
}
