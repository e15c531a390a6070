import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isAfterHole, lineOf, recent } from '../../console/lib/history.ts';

const START_MS = Date.parse('2026-02-24T10:00:00Z');
const at = (second: number, value = second) => ({
  at: new Date(START_MS + second * 1_000).toISOString(),
  value,
});

describe('the line of a chart', () => {
  it('ends where samples are missing and begins anew afterwards', () => {
    const [times, values] = lineOf([at(0), at(1), at(200), at(201)], ({ value }) => value);
    assert.deepEqual(
      times.map((time) => time - START_MS / 1_000),
      [0, 1, 100.5, 200, 201],
    );
    assert.deepEqual(values, [0, 1, null, 200, 201]);
  });

  it('goes on over a sample that came late', () => {
    assert.deepEqual(lineOf([at(0), at(3), at(4)], ({ value }) => value)[1], [0, 3, 4]);
    assert(!isAfterHole(undefined, at(0)));
  });

  it('is five minutes long by the clock, however many samples that is', () => {
    const points = [at(0), at(1), at(480), at(779), at(780)];
    assert.deepEqual(
      recent(points).map(({ value }) => value),
      [480, 779, 780],
    );
    assert.deepEqual(recent([]), []);
  });
});
