import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FAULTS } from '../../chaos/cells/faults.ts';
import { assertOneVersion, cellsSummaryOf, type End, type Outcome } from '../../chaos/cells/lines.ts';
import { readCellsCommand } from '../../chaos/options.ts';
import { reportOf } from '../../chaos/report.ts';

const HASH = 'c'.repeat(64);
const outcome = (number: number, gapMs: number, more: Partial<Outcome> = {}): Outcome => ({
  ...{ product_hash: HASH, number, side: 'db1', fault: 'kill-both', isFailover: true, gapMs },
  ...{ acknowledged: 50, lost: 0, doubled: 0, ...more },
});
const END: End = {
  product_hash: HASH,
  commit: 'a'.repeat(40),
  acknowledged: 150,
  drainMs: 900,
  findings: [],
};
const CONTROL = { name: 'asynchronous', why: 'no standby is waited for', acknowledged: 100, lost: 9 };

describe('a run of cells', () => {
  test('goes on with lines of its own product files, and refuses those of others', () => {
    assertOneVersion([outcome(0, 1), END], HASH, 'cells-1.jsonl');
    assertOneVersion([], HASH, 'cells-1.jsonl');
    const other = { ...END, product_hash: 'd'.repeat(64) };
    assert.throws(
      () => assertOneVersion([outcome(0, 1), other], HASH, 'cells-1.jsonl'),
      /other product files/,
    );
    // Written before lines named their product files.
    assert.throws(() => assertOneVersion([{}], HASH, 'cells-1.jsonl'), /other product files/);
  });

  test('is kept as one row for each fault and one for all', () => {
    const outcomes = [
      outcome(0, 8_000),
      outcome(1, 9_000),
      outcome(2, 100, { fault: 'etcd-member', isFailover: false }),
    ];
    const { faults, ...rest } = cellsSummaryOf(outcomes, [END, END], [CONTROL]);
    assert.deepEqual(rest, {
      ...{ failovers: 2, pairs_of_cells: 2, acknowledged: 300, slowest_drain_ms: 900, findings: [] },
      controls: [CONTROL],
    });
    assert.deepEqual(
      faults.map(({ fault }) => fault),
      [...FAULTS.map(({ name }) => name), 'all'],
    );
    assert.deepEqual(faults[0], {
      ...{
        fault: 'kill-both',
        times: 2,
        failovers: 2,
        gap_p50_ms: 8_000,
        gap_p99_ms: 9_000,
        lost: 0,
        doubled: 0,
      },
    });
    const never = faults.find(({ times }) => times === 0);
    assert.equal(never?.gap_p50_ms, null);
  });

  test('has a section in the report, and is not among what was not tested', () => {
    const origin = {
      ...{ suite: 'cells', at: '2026-01-01T00:00:00Z', commit: 'a'.repeat(40), product_hash: HASH },
      ...{ command: 'npm run chaos -- --cells', machine: { cores: 2 }, durability: { nodes: '3' } },
    };
    const cells = { ...origin, result: cellsSummaryOf([outcome(0, 8_000)], [END], [CONTROL]) };
    const page = reportOf({ others: { cells } }, HASH);
    assert.match(page, /^## Failovers of cells$/m);
    assert.match(page, /^\| kill-both \| 1 \| 1 \| 8,000 \| 8,000 \| 0 \| 0 \|$/m);
    assert.match(page, /^\| asynchronous \| no standby is waited for \| 100 \| 9 \|$/m);
    assert.doesNotMatch(page, /Failover to a replica under load/);
    assert.match(reportOf({ others: {} }, HASH), /Failover to a replica under load/);
  });

  test('is kept where that is asked for', () => {
    const read = (...args: string[]) => readCellsCommand(['--cells', ...args], () => 7);
    assert.equal(read()?.keep, false);
    assert.equal(read('--keep', '--seed', '3')?.keep, true);
  });
});
