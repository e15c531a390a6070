import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { costLine, demands } from '../../bench/console.ts';
import type { Row } from '../../bench/suite.ts';
import { PROJECT } from '../support/dev.ts';

test('a quick console run writes both rows with positive numbers, and durability was on', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'console.json');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'bench/run.ts', 'console', '--quick', '--json', file],
    { cwd: PROJECT, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  const result = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes'])
    assert.equal(result.settings[name], 'on', name);
  const rows: Row[] = result.rows;
  assert.deepEqual(
    rows.map(({ name, refused }) => [name, refused]),
    [
      ['claims-alone', 0],
      ['claims-with-tabs', 0],
    ],
  );
  for (const row of rows)
    for (const key of ['rate', 'p50_ms', 'p99_ms'] as const) assert.ok(row[key] > 0, key);
  assert.match(stdout, /tabs cost the claim door -?[\d.]+ % of its throughput/);
});

test('the cost is the median over pairs, and a tenth is too much', () => {
  const value = (ratios: number[]) => demands(ratios, 200)[0]?.value;
  assert.equal(value([0.95, 0.2, 0.97]), 0.95);
  const [demand] = demands([0.89], 200);
  assert.ok(demand?.value !== undefined && demand.value < demand.atLeast);
  assert.equal(
    costLine([0.95, 0.2, 0.97], 200),
    '200 tabs cost the claim door 5.0 % of its throughput (95 in 100: 3.0 % to 80.0 %)\npairs: 5.0 %, 80.0 %, 3.0 %',
  );
});
