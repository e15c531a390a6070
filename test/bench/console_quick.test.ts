import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statementsOf } from '../../bench/console/plans.ts';
import { costLine, demands } from '../../bench/console.ts';
import { runQuick } from './support.ts';

test('a quick console run writes both rows with positive numbers, and durability was on', (t) => {
  const { rows, stdout } = runQuick(t, 'console');
  const names = rows.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 2), ['claims-alone', 'claims-with-tabs']);
  for (const name of ['search-id-beginning', 'claims-by-rare-state', 'claims-page-200', 'export-claims'])
    assert.ok(names.includes(name), name);
  for (const name of ['sampling-unwatched', 'slots-on-sale', 'slots-on-sale without slot_manifest_by_tail'])
    assert.ok(names.includes(name), name);
  assert.match(
    stdout,
    /^claims-page-200: select \* from public\.claim_search\(p_limit => \$1, p_offset => \$2\)\n {2}.*Scan/m,
  );
  assert.doesNotMatch(stdout, /^ {2}\(/m, 'a plan that could not be read');
  assert.match(stdout, /tabs cost the claim door -?[\d.]+ % of its throughput/);
});

test('the cost is the median over pairs; a tenth of the throughput is too much, and so are 4 % of the CPU', () => {
  const isMet = (ratios: number[], cpu: number[]) =>
    demands(ratios, cpu, 200).map(({ value = 0, atLeast }) => value >= atLeast);
  assert.equal(demands([0.95, 0.2, 0.97], [1], 200)[0]?.value, 0.95);
  assert.deepEqual(isMet([0.95], [1.04, 1.02, 0.9]), [true, true]);
  assert.deepEqual(isMet([0.89], [1.04]), [false, false]);
  assert.equal(
    costLine([0.95, 0.2, 0.97], 200),
    '200 tabs cost the claim door 5.0 % of its throughput (95 in 100: 3.0 % to 80.0 %)\npairs: 5.0 %, 80.0 %, 3.0 %',
  );
});

test('the statement of a question is the one that the server sends', () => {
  assert.deepEqual(
    statementsOf('/admin/claims?limit=50&state=committed&page=200').map(({ side, text, values }) => [
      side,
      text,
      values,
    ]),
    [
      [
        'db1',
        'select * from public.claim_search(p_state => $1, p_limit => $2, p_offset => $3)',
        ['committed', '50', '9950'],
      ],
    ],
  );
  assert.deepEqual(
    statementsOf('/admin/search?q=user%2012').map(({ side, values }) => [side, values[0]]),
    [
      ['db1', 'user 12'],
      ['db2', 'user 12'],
    ],
  );
  assert.throws(() => statementsOf('/admin/unknown?limit=1'), /is not a list/);
});
