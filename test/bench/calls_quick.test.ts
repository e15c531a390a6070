import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertCpu, runQuick } from './support.ts';

test('a quick calls run writes every row with positive numbers, and durability was on', (t) => {
  const { rows } = runQuick(t, 'calls');
  assertCpu(rows);
  assert.deepEqual(
    rows.map(({ name, db_connections }) => [name, db_connections]),
    [
      ['single', 1],
      ['single', 10],
      ['coalesced', 1],
    ],
  );
});
