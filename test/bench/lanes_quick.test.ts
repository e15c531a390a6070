import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { demandsOf } from '../../bench/cost.ts';
import { bench } from './support.ts';

/** Of each suite: the rows of a quick run, and the numbers that must be there. */
const SUITES: Record<string, { rows: string[]; numbers: string[] }> = {
  backlog: {
    rows: ['backlog 100', 'backlog 1000'],
    numbers: ['take_blocks', 'take_ms', 'requests', 'quiet_p50_ms', 'quiet_p99_ms', 'p50_ms', 'p99_ms'],
  },
  holds: { rows: ['holds 0', 'holds 100'], numbers: ['singles', 'single_p50_ms', 'single_max_ms'] },
  rebuild: { rows: ['rebuild 1000'], numbers: ['slots', 'rebuild_sec', 'quiet_p99_ms', 'p99_ms'] },
  retention: {
    rows: ['retention 2000'],
    numbers: ['parts', 'part_max_ms', 'requests', 'quiet_p99_ms', 'p99_ms'],
  },
  cost: {
    rows: ['this'],
    numbers: [
      ...['ops', 'claim_cpu_us', 'claim_wal_bytes', 'message_cpu_us', 'message_wal_bytes'],
      ...['event_cpu_us', 'event_wal_bytes'],
    ],
  },
};

for (const [suite, expected] of Object.entries(SUITES))
  test(`a quick ${suite} run has all its rows and numbers`, (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-test-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const file = join(dir, `${suite}.json`);
    const { status, stderr } = bench(suite, '--quick', '--json', file);
    assert.equal(status, 0, stderr);
    const { rows, settings } = JSON.parse(readFileSync(file, 'utf8'));
    for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'autovacuum'])
      assert.equal(settings[name], 'on');
    assert.deepEqual(
      rows.map((row: { name: string }) => row.name),
      expected.rows,
    );
    for (const row of rows)
      for (const key of expected.numbers) assert.ok(row[key] > 0, `${row.name} ${key}: ${row[key]}`);
  });

test('cost is judged round by round against the other checkout, and not at all without one', () => {
  const sample = (cpu: number) => ({
    claim_cpu_us: cpu,
    claim_wal_bytes: 1,
    message_cpu_us: 1,
    message_wal_bytes: 1,
    event_cpu_us: 1,
    event_wal_bytes: 1,
  });
  const ours = [sample(105), sample(210), sample(420)];
  const [cpu, wal] = demandsOf(
    new Map([
      ['this', ours],
      ['old', [sample(100), sample(200), sample(100)]],
    ]),
  );
  assert.deepEqual([cpu?.value, wal?.value], [1, 1.05]);
  assert.deepEqual(
    demandsOf(new Map([['this', ours]])).map(({ value }) => value),
    Array(6).fill(undefined),
  );
});
