import assert from 'node:assert/strict';
import test from 'node:test';
import { createTapReader } from './tap.ts';

function read(...texts: string[]): ReturnType<ReturnType<typeof createTapReader>['finish']> {
  const tap = createTapReader('a.test.sql');
  texts.forEach((text, index) => {
    tap.read(text, index + 1);
  });
  return tap.finish();
}

test('a failed test carries its own diagnostics, a passed one is only counted', () => {
  assert.deepEqual(
    read('1..2', 'ok 1 - first', 'not ok 2 - second\n# Failed test 2: "second"\n#     have: 1'),
    {
      passed: 1,
      failures: [{ name: 'a.test.sql:3: second', detail: '# Failed test 2: "second"\n#     have: 1\n' }],
      skips: [],
    },
  );
});

test('a file that runs fewer or more tests than planned fails', () => {
  assert.deepEqual(read('1..2', 'ok 1 - a').failures, [
    { name: 'a.test.sql: plan', detail: 'planned 2 tests but ran 1' },
  ]);
  assert.deepEqual(read('1..1', 'ok 1 - a', 'ok 2 - b').failures, [
    { name: 'a.test.sql: plan', detail: 'planned 1 tests but ran 2' },
  ]);
});

test('a file without a plan fails, so an empty file cannot pass', () => {
  assert.deepEqual(read().failures, [{ name: 'a.test.sql: plan', detail: 'the file has no plan' }]);
});

test('a plan that comes last is as good as one that comes first', () => {
  assert.deepEqual(read('ok 1 - a', '1..1').failures, []);
});

test('a skipped test is neither passed nor failed and keeps its reason', () => {
  assert.deepEqual(read('1..1', 'ok 1 # SKIP no realtime here'), {
    passed: 0,
    failures: [],
    skips: [{ name: 'a.test.sql:2: # SKIP no realtime here', detail: 'no realtime here' }],
  });
});

test('rows that are not TAP are not counted', () => {
  assert.equal(read('1..1', 'okay', 'ok 1 - a', 'a note').passed, 1);
});
