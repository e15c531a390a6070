import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lacking, mergePlaces, type PlaceRow } from '../../src/fleet/directory.ts';

const row = (pool_id: string, cell: string, version: number, more: Partial<PlaceRow> = {}): PlaceRow => ({
  pool_id,
  cell,
  version,
  moving_to: null,
  is_here: false,
  digits: 'abc',
  ...more,
});
const here = { is_here: true };
const placesOf = (reports: Record<string, PlaceRow[]>) =>
  Object.fromEntries(
    [...mergePlaces(new Map(Object.entries(reports))).places].map(([pool, { cell, version, movingTo }]) => [
      pool,
      `${cell} ${version}${movingTo ? ` → ${movingTo}` : ''}`,
    ]),
  );

describe('the directory', () => {
  it('believes a cell about its own pools, and no copy against it', () => {
    assert.deepEqual(placesOf({ a: [row('x', 'a', 1, here)], b: [row('x', 'c', 1)] }), { x: 'a 1' });
    assert.deepEqual(placesOf({ a: [], b: [row('x', 'a', 1)] }), {}, 'a answers, and has no such pool');
  });

  it('believes a copy about a cell that does not answer', () => {
    assert.deepEqual(placesOf({ b: [row('x', 'a', 1)] }), { x: 'a 1' });
    assert.deepEqual(placesOf({ b: [row('x', 'a', 1)], c: [row('x', 'd', 2)] }), { x: 'd 2' }, 'the newest');
    assert.deepEqual(
      placesOf({ b: [row('x', 'b', 1, here)], c: [row('x', 'a', 2)] }),
      { x: 'a 2' },
      'it moved on',
    );
  });

  it('follows a move from the first step to the last', () => {
    const moving = row('x', 'a', 2, { moving_to: 'b' });
    assert.deepEqual(placesOf({ a: [moving], b: [] }), { x: 'a 2 → b' });
    assert.deepEqual(placesOf({ a: [moving], b: [row('x', 'b', 2, here)] }), { x: 'b 2' }, 'unpacked');
    assert.deepEqual(placesOf({ a: [row('x', 'b', 2)], b: [row('x', 'b', 2, here)] }), { x: 'b 2' }, 'sent');
    assert.deepEqual(placesOf({ a: [row('x', 'b', 2)] }), { x: 'b 2' }, 'and the target is away');
  });

  it('names pools that two cells have', () => {
    const { doubles } = mergePlaces(
      new Map([
        ['a', [row('x', 'a', 1, here)]],
        ['b', [row('x', 'b', 1, here)]],
      ]),
    );
    assert.deepEqual([...doubles], [['x', ['a', 'b']]]);
  });

  it('tells each cell what it lacks, and nothing of its own or of what moves', () => {
    const reports = new Map([
      ['a', [row('x', 'a', 2, here), row('old', 'c', 1)]],
      ['b', [row('old', 'b', 3, here), row('y', 'b', 2, { moving_to: 'a' })]],
    ]);
    const { places } = mergePlaces(reports);
    const told = (cell: string) => lacking(cell, reports, places).map(({ poolId }) => poolId);
    assert.deepEqual([told('a'), told('b')], [['old'], ['x']]);
  });
});
