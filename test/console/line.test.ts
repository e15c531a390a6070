import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isAfterHole, lineOf } from '../../console/lib/line.ts';

const START_MS = Date.parse('2026-02-24T10:00:00Z');
const at = (second: number, value = second) => ({
  at: new Date(START_MS + second * 1_000).toISOString(),
  value,
});

describe('the line of a chart', () => {
  it('ends where nothing was sampled and begins anew afterwards', () => {
    const [times, values] = lineOf([at(0), at(2), at(200), at(202)], ({ value }) => value, 2);
    assert.deepEqual(
      times.map((time) => time - START_MS / 1_000),
      [0, 2, 101, 200, 202],
    );
    assert.deepEqual(values, [0, 2, null, 200, 202]);
  });

  it('goes on over a sample that came late, and over steps as long as the range has them', () => {
    assert.deepEqual(lineOf([at(0), at(6), at(8)], ({ value }) => value, 2)[1], [0, 6, 8]);
    assert.deepEqual(lineOf([at(0), at(300), at(600)], ({ value }) => value, 300)[1], [0, 300, 600]);
    assert(!isAfterHole(undefined, at(0), 2));
  });
});
