import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RareLines } from '#core/rare_lines.ts';

function linesAt() {
  let now = 0;
  const lines = new RareLines(() => now);
  return (atMs: number, kind = 'a') => {
    now = atMs;
    return lines.next(kind);
  };
}

test('failures alike have one line in ten seconds, and the next says how many were left out since when', () => {
  const next = linesAt();
  assert.deepEqual(next(0), {});
  assert.equal(next(1), undefined);
  assert.equal(next(9_999), undefined);
  assert.deepEqual(next(10_000), { untold: 2, untold_since: '1970-01-01T00:00:00.000Z' });
  assert.deepEqual(next(30_000), {}, 'nothing was left out');
});

test('a failure of another kind has its own line', () => {
  const next = linesAt();
  next(0, 'a');
  assert.deepEqual(next(0, 'b'), {});
});

test('a clock that is set back silences nothing', () => {
  const next = linesAt();
  next(3_600_000);
  assert.deepEqual(next(0), {});
  assert.equal(next(1), undefined);
});

test('kinds without an end take no memory without an end', () => {
  const next = linesAt();
  for (let kind = 0; kind < 200; kind++) next(0, `${kind}`);
  assert.equal(next(1, '0'), undefined);
  next(1, 'one more');
  assert.deepEqual(next(1, '0'), {}, 'the first one made room');
  assert.equal(next(1, '2'), undefined);
});
