import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { coverageOf, emptyCells, OPERATIONS, sumOfCoverage } from '../../chaos/coverage.ts';
import { FAULT_KINDS } from '../../chaos/faults/kinds.ts';
import type { History } from '../../chaos/history.ts';
import { judge } from '../../chaos/judge.ts';
import { coverageTable } from '../../chaos/report_runs.ts';
import { resultOf, summaryOfRun } from '../../chaos/result.ts';
import { goodHistory } from './good_history.ts';
import { addOrders } from './good_orders.ts';

const column = (name: string): number => OPERATIONS.findIndex((operation) => operation.name === name);

/** One fault of each kind over the whole run. */
function stormyHistory(): History {
  const history = goodHistory();
  addOrders(history);
  const last = Math.max(history.calmAt, history.drainedAt ?? 0);
  history.faults = Object.keys(FAULT_KINDS).map((name) => ({
    ...{ name, target: 'all', startedAt: 0, healedAt: last, recoveredAt: null },
  }));
  return history;
}

describe('which operation met which fault', () => {
  test('counts what was under way between the beginning of a fault and its aftermath', () => {
    const history = goodHistory();
    const call = history.claims[0];
    assert.ok(call);
    history.claims = [
      { ...call, requestId: 'before', startedAt: 0, endedAt: 9_999 },
      { ...call, requestId: 'through', startedAt: 9_000, endedAt: 40_000 },
      { ...call, requestId: 'after', startedAt: 15_900, endedAt: 16_000 },
      { ...call, requestId: 'late', startedAt: 19_000, endedAt: 19_100 },
    ];
    history.faults = [
      { name: 'kill-worker', target: 'w', startedAt: 10_000, healedAt: 10_500, recoveredAt: 11_000 },
    ];
    assert.equal(coverageOf(history)['kill-worker']?.[column('claim')], 2);
  });

  test('tells claims by PostgREST and claims that were asked again from the others', () => {
    const history = goodHistory();
    history.faults = [{ name: 'cut', target: 'x', startedAt: 0, healedAt: 90_000, recoveredAt: null }];
    const row = coverageOf(history).cut ?? [];
    assert.equal(row[column('claim by PostgREST')], 1);
    assert.equal(row[column('claim')], history.claims.length - 1);
    assert.equal(row[column('claim again')], 0);
  });

  test('names every cell that is empty, and a fault that never happened', () => {
    const all = OPERATIONS.map(() => 1);
    assert.deepEqual(
      emptyCells({ cut: all, delay: all.with(column('void'), 0) }, ['cut', 'delay', 'kill-redis']),
      ['delay × void', 'kill-redis × everything'],
    );
  });

  test('adds up runs, also where one had a fault that the other had not', () => {
    const one = { cut: OPERATIONS.map(() => 1) };
    const other = { cut: OPERATIONS.map(() => 2), delay: OPERATIONS.map(() => 5) };
    const sum = sumOfCoverage([one, other]);
    assert.deepEqual(sum, { cut: OPERATIONS.map(() => 3), delay: OPERATIONS.map(() => 5) });
  });

  test('has a row for each fault and a column for each operation in the report', () => {
    const history = stormyHistory();
    const origin = {
      ...{ suite: 'chaos', at: '2026-01-01T00:00:00Z', commit: 'a'.repeat(40), product_hash: 'c'.repeat(64) },
      ...{ command: 'npm run chaos', machine: {}, durability: {}, product_hash_at_end: 'c'.repeat(64) },
    };
    const page = coverageTable(summaryOfRun({ ...origin, result: resultOf(history, judge(history)) }));
    const rows = page.split('\n').filter((line) => /^\| [a-z]/.test(line));
    assert.deepEqual(
      rows.slice(1).map((line) => line.split(' | ')[0]?.slice(2)),
      Object.keys(FAULT_KINDS),
    );
    for (const line of rows) assert.equal(line.split(' | ').length, OPERATIONS.length + 1);
    assert.match(page, /cells are empty\*\*: kill-db1-postmaster × /);
  });
});
