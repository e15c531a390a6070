import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costLine, demands } from '../../bench/console.ts';
import { runQuick } from './support.ts';

test('a quick console run writes both rows with positive numbers, and durability was on', (t) => {
  const { rows, stdout } = runQuick(t, 'console');
  const names = rows.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 2), ['claims-alone', 'claims-with-tabs']);
  for (const name of ['search-id-beginning', 'claims-by-rare-state', 'claims-page-200', 'export-claims'])
    assert.ok(names.includes(name), name);
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
