import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Row } from '../../bench/suite.ts';
import { findTools } from '../../bench/tools.ts';
import { StackError } from '../../src/stack/failure.ts';
import { PROJECT } from '../support/dev.ts';

const ROW_NAMES = [
  ...['baseline', 'baseline-indexed', 'single', 'single-request-id', 'batch', 'batch-request-id', 'floor'],
  ...['http', 'http-indexed', 'http-coalesced', 'batch-small-pool', 'batch-large-pool'],
  ...['sold-out-baseline', 'sold-out-baseline-indexed', 'sold-out'],
];

function bench(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', 'bench/run.ts', ...args], {
    cwd: PROJECT,
    encoding: 'utf8',
  });
}

/** False, with the reason, where the load generators are missing and may not be installed. */
async function hasTools(t: TestContext): Promise<boolean> {
  try {
    await findTools();
    return true;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    t.skip(`${error.message}; ${error.hint}`);
    return false;
  }
}

test('a quick run writes every row with positive numbers, and durability was on', async (t) => {
  if (!(await hasTools(t))) return;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'claims.json');
  const { status, stdout, stderr } = bench('claims', '--quick', '--json', file);
  assert.equal(status, 0, stderr);

  const result = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(result.suite, 'claims');
  assert.ok(!Number.isNaN(Date.parse(result.at)));
  for (const key of ['commit', 'command', 'machine', 'settings']) assert.ok(result[key], key);
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes'])
    assert.equal(result.settings[name], 'on', name);

  const rows: Row[] = result.rows;
  assert.deepEqual([...new Set(rows.map((row) => row.name))].sort(), [...ROW_NAMES].sort());
  for (const row of rows) {
    for (const key of ['clients', 'batch', 'rate', 'p50_ms', 'p99_ms'] as const)
      assert.ok(row[key] > 0, `${row.name} ${key}`);
    assert.ok(row.wal_bytes_per_op >= 0, row.name);
    assert.ok(!row.refused && !row.broken, `${row.name} had requests refused or dropped`);
  }
  for (const name of ROW_NAMES) assert.match(stdout, new RegExp(`^${name} `, 'm'));
  assert.match(stdout, /^must show/m);
});

test('an unknown suite is refused with the list of suites', () => {
  const { status, stderr } = bench('nonsense');
  assert.equal(status, 2);
  assert.match(stderr, /no suite nonsense.*Suites: claims/);
});

test('--help names the suites and the options', () => {
  const { status, stdout } = bench('--help');
  assert.equal(status, 0);
  for (const word of ['claims', '--json', '--quick']) assert.ok(stdout.includes(word), word);
});
