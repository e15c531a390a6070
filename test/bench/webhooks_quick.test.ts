import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Row } from '../../bench/suite.ts';
import { demands } from '../../bench/webhooks/rows.ts';
import { assertCpu, hasTools, runQuick } from './support.ts';

const ROW_NAMES = ['single', 'coalesced', 'coalesced-stub', 'process', 'graphile-worker'];

test('a quick webhooks run writes every row with positive numbers, and durability was on', async (t) => {
  if (!(await hasTools(t))) return;
  const { rows } = runQuick(t, 'webhooks');
  assertCpu(rows);
  assert.deepEqual([...new Set(rows.map((row) => row.name))], ROW_NAMES);
  for (const row of rows) if (row.name !== 'coalesced-stub') assert.ok(row.wal_bytes_per_op > 0, row.name);
  assert.deepEqual(
    rows.filter(({ name }) => name === 'single').map((row) => row.db_connections),
    [1, 10],
  );
});

test('the coalesced door is held against one insert each, and our worker at its best against the other', () => {
  const row = (name: string, rate: number, connections?: number): Row => ({
    ...{ name, rate, clients: 64, batch: 1, p50_ms: 1, p99_ms: 1, wal_bytes_per_op: 1 },
    ...(connections !== undefined && { db_connections: connections }),
  });
  const rows = [
    ...[
      row('single', 100, 1),
      row('single', 300, 10),
      row('coalesced', 900, 1),
      row('coalesced-stub', 1_800, 1),
    ],
    ...[row('process', 50), row('process', 80), row('graphile-worker', 40), row('graphile-worker', 20)],
  ];
  assert.deepEqual(
    demands(rows).map(({ atLeast, value }) => ({ atLeast, value })),
    [
      { atLeast: 4, value: 9 },
      { atLeast: 2, value: 3 },
      { atLeast: 0.6, value: 0.5 },
      { atLeast: 1, value: 2 },
    ],
  );
  assert.deepEqual(
    demands([row('coalesced', 900, 1)]).map(({ value }) => value),
    Array(4).fill(undefined),
    'without the others nothing is measured',
  );
});
