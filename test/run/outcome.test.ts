import assert from 'node:assert/strict';
import test from 'node:test';
import { describe, failedOne, lastLine, PASSED_ONE, skippedOne, strict, sum } from './outcome.ts';

test('the last line names skips only where there are some', () => {
  assert.equal(lastLine(sum([PASSED_ONE, PASSED_ONE])), '2 passed, 0 failed');
  assert.equal(lastLine(sum([failedOne('a', ''), skippedOne('b', '')])), '0 passed, 1 failed, 1 skipped');
});

test('in strict mode a skip is a failure that keeps its reason', () => {
  const outcome = strict(sum([PASSED_ONE, skippedOne('debian', 'no apt-get')]));
  assert.equal(lastLine(outcome), '1 passed, 1 failed');
  assert.match(outcome.failures[0]?.detail ?? '', /no apt-get/);
});

test('a described failure repeats every line of its detail', () => {
  assert.equal(describe([{ name: 'a', detail: 'x\ny\n' }], 'FAILED'), '\nFAILED: a\n    x\n    y');
});
